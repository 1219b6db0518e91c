-- The health of a PodCliqueSet for Argo CD, by its conditions Ready, Reconciling and Stalled. Where Grove's operator writes the status it
-- has none of this generation: then by its counts, and never Degraded, since a set that comes up has the same counts as one that lost pods.
local status = obj.status
if status == nil or status.observedGeneration ~= obj.metadata.generation then
  return {status = "Progressing", message = "not carried out yet"}
end
local current = {}
for _, condition in ipairs(status.conditions or {}) do
  if condition.observedGeneration == obj.metadata.generation then current[condition.type] = condition end
end
local ready, stalled = current.Ready, current.Stalled
if stalled ~= nil and stalled.status == "True" then return {status = "Degraded", message = stalled.message} end
if ready ~= nil then
  if ready.status == "True" then return {status = "Healthy", message = ready.message} end
  if ready.reason == "MinAvailableBreached" then return {status = "Degraded", message = ready.message} end
  return {status = "Progressing", message = ready.message}
end
local wanted = obj.spec.replicas or 1
if wanted == 0 then
  if (status.replicas or 0) > 0 then return {status = "Progressing", message = "scaling to zero"} end
  return {status = "Healthy", message = "scaled to zero"}
end
local update = status.updateProgress
if update ~= nil and update.updateEndedAt == nil then
  return {status = "Progressing", message = "an update is in progress"}
end
local message = (status.availableReplicas or 0) .. " of " .. wanted .. " replicas are available"
if (status.availableReplicas or 0) < wanted then return {status = "Progressing", message = message} end
return {status = "Healthy", message = message}
