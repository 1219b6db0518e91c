-- The health of a LeaderWorkerSet for Argo CD: by its counts too, since its conditions do not name a generation.
local status, wanted = obj.status or {}, obj.spec.replicas or 1
if status.observedGeneration ~= nil and status.observedGeneration ~= obj.metadata.generation then
  return {status = "Progressing", message = "not carried out yet"}
end
local ready, updated = status.readyReplicas or 0, status.updatedReplicas or 0
if wanted == 0 then
  if (status.replicas or 0) > 0 then return {status = "Progressing", message = "scaling to zero"} end
  return {status = "Healthy", message = "scaled to zero"}
end
local partition = 0
local rolling = (obj.spec.rolloutStrategy or {}).rollingUpdateConfiguration
if rolling ~= nil then partition = rolling.partition or 0 end
local message = ready .. " of " .. wanted .. " groups are ready, " .. updated .. " updated"
if ready < wanted or updated < wanted - partition then return {status = "Progressing", message = message} end
for _, condition in ipairs(status.conditions or {}) do
  if condition.type == "Available" and condition.status == "True" then return {status = "Healthy", message = message} end
end
return {status = "Progressing", message = message}
