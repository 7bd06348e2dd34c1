# What a shell may have set for other work, and what no recipe here may read. What starts Spark, a minicluster or the
# job has a table of its own: ytstream/settings/environment.py.
# Python: another interpreter's modules, and options that change what a program does.
unexport PYTHONHOME PYTHONSAFEPATH PYTHONINSPECT PYTHONOPTIMIZE PYTHONWARNINGS
# git sets these for its hooks; they win over the folder that git is called in.
unexport GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_COMMON_DIR GIT_PREFIX GIT_OBJECT_DIRECTORY \
  GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_NAMESPACE
# pip and uv: another folder, or another set of packages, than the locked one in the environment. Where packages come
# from is kept: index, links, certificates, proxies, caches.
unexport PIP_TARGET PIP_PREFIX PIP_ROOT PIP_PYTHON PIP_REQUIREMENT PIP_EDITABLE PIP_PLATFORM PIP_BUILD_CONSTRAINT
# A file of pip's (PIP_CONFIG_FILE, ~/.config/pip/pip.conf) may say the same. Only a variable wins over a file, and pip
# ignores an empty one (`_update_defaults` of pip/_internal/cli/parser.py).
export PIP_USER := 0
export PIP_DRY_RUN := 0
export PIP_NO_DEPS := 0
export PIP_REQUIRE_HASHES := 0
export PIP_IGNORE_INSTALLED := 0
export PIP_NO_BINARY := :none:
export PIP_ONLY_BINARY := :none:
export PIP_CONSTRAINT := /dev/null
unexport UV_SYSTEM_PYTHON UV_PYTHON UV_TARGET UV_PREFIX UV_NO_DEPS UV_REQUIRE_HASHES UV_CONSTRAINT UV_BUILD_CONSTRAINT \
  UV_OVERRIDE UV_EXCLUDE UV_EXCLUDE_NEWER UV_NO_BUILD UV_NO_BUILD_PACKAGE UV_NO_BINARY UV_NO_BINARY_PACKAGE \
  UV_RESOLUTION UV_PRERELEASE UV_NO_VERIFY_HASHES
comma := ,
# Addresses of this machine are reached without the proxy that HTTP_PROXY and its like name.
ifeq ($(findstring localhost,$(no_proxy)),)
export no_proxy := $(if $(no_proxy)$(NO_PROXY),$(or $(no_proxy),$(NO_PROXY))$(comma))127.0.0.1,localhost,::1
export NO_PROXY := $(no_proxy)
endif
# Python reads its path files (*.pth) in the locale's encoding, and Java the names of files: others than UTF-8 lack letters.
ifeq (,$(filter %.UTF-8 %.utf-8 %.UTF8 %.utf8,$(or $(LC_ALL),$(LC_CTYPE),$(LANG),C)))
export LC_ALL := C.UTF-8
endif
# Class paths, PYTHONPATH and environments of Python end there; none of them has a way to quote it.
$(if $(findstring :,$(CURDIR)),$(error The path of this folder has a colon: $(CURDIR). No class path can hold one: move \
  or rename the folder))
