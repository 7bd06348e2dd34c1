# What must be on the machine already. Spark reads JAVA_HOME before PATH, and so does this.
# Java 21 is accepted, because SPYT and Spark 4 support it: some systems have only one of the two.
JAVAS := $(JAVA) 21
GET_JAVA := Debian 12, Ubuntu: apt install openjdk-$(JAVA)-jre-headless. Debian 13: apt install openjdk-21-jre-headless. \
  Fedora: dnf install java-21-openjdk-headless. macOS: brew install openjdk@21, then \
  export JAVA_HOME=\"\$$(brew --prefix openjdk@21)\".
prerequisites: git java

git:
	@command -v git > /dev/null || { echo "git is missing. Debian: apt install git. macOS: xcode-select --install" >&2; exit 1; }

java:
	@java="$${JAVA_HOME:+$$JAVA_HOME/bin/}java"; \
	said=$$("$$java" -version 2>&1); code=$$?; \
	version=$$(echo "$$said" | sed -n 's/.* version "\([0-9]*\).*/\1/p'); \
	case "$$said" in *"Unable to locate a Java Runtime"*) code=127;; esac; \
	case "$$code" in 0|126|127) ;; *) \
	  echo "'$$java' does not start, it ends with code $$code:" \
	    "$$(echo "$$said" | sed 's/Picked up \([A-Z_]*\): .*/Options are in \1./' | awk '{ printf "%s ", $$0 }')" >&2; exit 1;; esac; \
	case " $(JAVAS) " in *" $${version:-none} "*) ;; *) \
	  echo "Java $(firstword $(JAVAS)) or $(lastword $(JAVAS)) is missing: '$$java' is $${version:+version }$${version:-not there}." \
	    "$(GET_JAVA)" \
	    "Several may live side by side: set JAVA_HOME." >&2; exit 1;; esac

# Sets $python to the first of these that is Python 3.11 or later and can make environments.
find-python = for python in $(or $(PYTHON),python3.11 python3.12 python3.13 python3) ""; do \
	  test -n "$$python" || { \
	    echo "Python 3.11 or later with venv is missing (looked for: $(or $(PYTHON),python3.11 python3.12 python3.13 python3))." \
	      "Debian: apt install python3 python3-venv. macOS: brew install python@3.11. Another place: PYTHON=FILE" >&2; exit 1; }; \
	  "$$python" -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null && break; \
	done

# Makes the environment $(1) if it is not there; .begun is in it until all packages are, too.
make-environment = test -x "$(1)/bin/python" || { $(find-python); "$$python" -m venv "$(1)" && touch "$(1)/.begun"; }
