-- The health of a PodCliqueScalingGroup for Argo CD. Never Degraded: one that comes up has the same conditions as one that lost pods.
local status = obj.status
if status == nil or status.observedGeneration ~= obj.metadata.generation then
  return {status = "Progressing", message = "not all of its PodCliques exist"}
end
local update = status.updateProgress
if update ~= nil and update.updateStartedAt ~= nil and update.updateEndedAt == nil then
  return {status = "Progressing", message = "an update is in progress"}
end
local wanted, available = obj.spec.replicas or 1, status.availableReplicas or 0
local needed = math.min(obj.spec.minAvailable or wanted, wanted)
local message = available .. " of " .. wanted .. " replicas are available"
if available < needed then return {status = "Progressing", message = message} end
return {status = "Healthy", message = message}
