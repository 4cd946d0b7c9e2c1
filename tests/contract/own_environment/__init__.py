"""Contracts of packages that only `make test-integrations` installs."""
