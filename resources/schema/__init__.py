"""Wire models: our own kinds as they travel, from which their CRDs are generated. One file per kind; `crds` and `parse` use them all."""
