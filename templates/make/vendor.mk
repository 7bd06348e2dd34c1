# Compares the wheels in vendor/ with their list. In Python: macOS has no sha256sum.
define COMPARE_SUMS
import hashlib, pathlib, re, sys
folder = pathlib.Path("vendor")
sums = folder / "SHA256SUMS"
lines = re.findall(r"^([0-9a-f]{64}) [ *](.+)$$", sums.read_text() if sums.exists() else "", re.M)
listed = {name: digest for digest, name in lines}
found = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.glob("*.whl")}
for name in sorted(listed.keys() | found.keys()):
    if listed.get(name) != found.get(name):
        known = "is not listed in" if name not in listed else "differs from its checksum in"
        how = known if name in found else "is missing, but listed in"
        sys.exit(f"vendor/{name} {how} vendor/SHA256SUMS. Nothing was installed."
                 " To take vendor/ from the last commit again: git checkout vendor")
endef
export COMPARE_SUMS

check-wheels = "$(1)/bin/python" -c "$$COMPARE_SUMS" || { $(call remove-half,$(1)); exit 1; }

# Without dependencies: requirements.txt has them. A wheel with the version of an installed one replaces it.
install-wheels = $(call installer,$(1)) --no-deps --no-index $(if $(UV),--reinstall,--force-reinstall) $(WHEELS)

# The wheels of vendor/ are not in requirements.txt, what they depend on is.
LOCK = pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-emit-index-url \
  --custom-compile-command "make lock" --extra dev pyproject.toml --output-file requirements.txt \
  $(if $(WHEELS),--find-links vendor $(foreach wheel,$(notdir $(WHEELS)),--no-emit-package $(firstword $(subst -, ,$(wheel)))))
