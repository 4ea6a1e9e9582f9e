"""Made by `make python-proto`. Not edited by hand."""
