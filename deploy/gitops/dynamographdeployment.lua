-- The health of a DynamoGraphDeployment for Argo CD. Degraded only when the graph is invalid: other failures may heal by themselves.
for _, condition in ipairs((obj.status or {}).conditions or {}) do
  if condition.type == "Ready" and condition.observedGeneration == obj.metadata.generation then
    if condition.status == "True" then return {status = "Healthy", message = condition.message} end
    if condition.reason == "ValidationFailed" then return {status = "Degraded", message = condition.message} end
    return {status = "Progressing", message = condition.message}
  end
end
return {status = "Progressing", message = "not carried out yet"}
