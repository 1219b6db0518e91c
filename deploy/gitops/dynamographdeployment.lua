-- The health of a DynamoGraphDeployment for Argo CD, by its conditions Ready and Stalled. Where Dynamo's operator writes the status, it is
-- Degraded only when the graph is not valid: other failures may heal by themselves.
local current = {}
for _, condition in ipairs((obj.status or {}).conditions or {}) do
  if condition.observedGeneration == obj.metadata.generation then current[condition.type] = condition end
end
local ready, stalled = current.Ready, current.Stalled
if stalled ~= nil and stalled.status == "True" then return {status = "Degraded", message = stalled.message} end
if ready == nil then return {status = "Progressing", message = "not carried out yet"} end
if ready.status == "True" then return {status = "Healthy", message = ready.message} end
if ready.reason == "ValidationFailed" then return {status = "Degraded", message = ready.message} end
return {status = "Progressing", message = ready.message}
