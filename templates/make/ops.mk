# A small environment for a person on call: what `status`, `why`, `logs`, `stop`, `drain`, `metrics` and `fleet` need.
# No Java, no Spark, no SPYT: ytsaurus-client and ytstream-tools, of the locked versions.
OPS_PACKAGES := ytstream ytstream-tools ytsaurus-client ytsaurus-yson simplejson decorator tqdm colorama argcomplete \
  charset-normalizer typing-extensions distro rich markdown-it-py mdurl pygments prometheus-client
OPS_STAMP = $(OPS)/.ops-$(shell cksum requirements.txt $(wildcard vendor/*) | cksum | cut -d ' ' -f 1)

ops: ## a small environment without Java and Spark, for status, why, logs, stop, drain, metrics and fleet
	@test -f "$(OPS_STAMP)" || $(MAKE) --no-print-directory install-ops
	@echo 'Ready: make status, why, logs, stop, drain, metrics. All jobs: "$(OPS)/bin/python" -m ytstream_tools fleet --help'

# Without dependencies: ytstream names Spark and SPYT among its own. pip itself goes: it takes a third of the space.
install-ops:
	@if test -e "$(OPS)" && ! test -f "$(OPS)/pyvenv.cfg"; then echo "$(OPS) is something else than an environment" >&2; exit 1; fi
	@$(find-python); "$$python" -m venv --clear $(if $(UV),--without-pip) "$(OPS)" && touch "$(OPS)/.begun"
	@$(call check-wheels,$(OPS))
	@awk -v names=" $(OPS_PACKAGES) " '/^[A-Za-z0-9]/ { split($$1, part, "=="); kept = index(names, " " part[1] " ") } \
	  /^#/ { kept = 0 } kept' requirements.txt > "$(OPS)/requirements.txt"
	@$(call name-index,"$(OPS)/bin/python"); $(call installer,$(OPS)) --no-deps --require-hashes -r "$(OPS)/requirements.txt"
	$(if $(WHEELS),@$(call installer,$(OPS)) --no-deps --no-index $(if $(UV),--reinstall,--force-reinstall) \
	  $(wildcard vendor/ytstream-*.whl vendor/ytstream_tools-*.whl))
	$(if $(UV),,@"$(OPS)/bin/python" -m pip uninstall --quiet --yes setuptools pip)
	@rm -f "$(OPS)/.begun"
	@touch "$(OPS_STAMP)"
