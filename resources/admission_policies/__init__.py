"""ValidatingAdmissionPolicies and MutatingAdmissionPolicies: the admission rules that an API server can evaluate itself."""
