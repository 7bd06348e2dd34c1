# Packages are installed by uv where it works, else by pip; UV= takes pip all the same.
UV ?= $(shell uv --version > /dev/null 2>&1 && echo uv)

# Installs into the environment $(1). Sources are built with what is in it already, not with the newest of the day.
# As uv does, pip leaves it to Python to compile what is imported: all of it takes a third of the time of a set-up.
installer = $(if $(UV),"$(UV)" pip install --quiet --python "$(1)/bin/python","$(1)/bin/python" -m pip install --quiet \
  --no-compile --disable-pip-version-check) --no-build-isolation

# uv does not read the settings of pip, $(1). The URL of an index may hold a password: no file and no command line gets it.
name-index = if test -n "$(UV)" && test -z "$${UV_DEFAULT_INDEX:-$$UV_INDEX_URL}"; then \
	  index="$${PIP_INDEX_URL:-$$($(1) -m pip config list 2> /dev/null | \
	    awk -F "'" '/^(global|install)\.index-url=/ { url = $$2 } END { print url }')}"; \
	  if test -n "$$index"; then UV_DEFAULT_INDEX="$$index"; export UV_DEFAULT_INDEX; fi; fi

# Installs the locked packages of the file $(2) into $(1): first what builds pyspark, which comes as source.
install-locked = $(call name-index,"$(1)/bin/python"); { \
	  awk '/^setuptools==/, !/\\$$/' "$(2)" > "$(1)/backend.txt" && \
	  $(call installer,$(1)) --require-hashes -r "$(1)/backend.txt" && \
	  $(call installer,$(1)) --require-hashes -r "$(2)"; } || { \
	  $(call remove-half,$(1)); \
	  echo "The packages were not installed; the reason is above (an environment takes 1 GB). Without a network: call this where a package index can be" \
	    "reached, or name a mirror (pip config set global.index-url URL), then call it again." \
	    $(if $(UV),"UV= takes pip instead of uv.") >&2; exit 1; }

# An environment that has never been whole goes: half of one would look like it.
remove-half = if test -f "$(1)/.begun"; then rm -rf "$(1)"; fi
