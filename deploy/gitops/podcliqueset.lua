-- The health of a PodCliqueSet for Argo CD. Never Degraded: a set that comes up reports the same counts as one that lost pods.
local status = obj.status
if status == nil or status.observedGeneration ~= obj.metadata.generation then
  return {status = "Progressing", message = "not carried out yet"}
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
