# Of .cruft.json, and of the template: its release, if it is one.
TEMPLATE := $(shell sed -n 's/^ *"template": "\(.*\)",*$$/\1/p' .cruft.json 2> /dev/null)
VERSION := $(shell sed -n '/^\[tool.ytstream-template\]/,/^\[/s/^version = "\(.*\)"$$/\1/p' pyproject.toml)

outdated: git ## say whether the template has a newer version: exit 1 if so; CI calls it
	@$(if $(TEMPLATE),,echo "cruft does not know where the template is: cruft link, once"; exit 0;) \
	export GIT_TERMINAL_PROMPT=0; \
	tags="$$(git ls-remote --tags --refs -- "$(TEMPLATE)")" || { \
	  echo "The template cannot be reached; this says nothing about its version."; exit 0; }; \
	newest="$$(echo "$$tags" | sed -n 's|.*refs/tags/v\([0-9]*\.[0-9]*\.[0-9]*\)$$|\1|p' | { cat; echo "$(VERSION)"; } | \
	  sort -t . -k 1,1n -k 2,2n -k 3,3n | tail -n 1)"; \
	if test "$$newest" = "$(VERSION)"; then echo "The template has no newer version than $(VERSION)."; exit 0; fi; \
	echo "$${GITHUB_ACTIONS:+::warning title=Template::}The template has version $$newest, this repository is of" \
	  "$(VERSION): cruft update --checkout v$$newest"; exit 1
