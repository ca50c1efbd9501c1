"""What the monitor is made of, and whether anything of it is known to be vulnerable: `make sbom`, `make audit`."""
