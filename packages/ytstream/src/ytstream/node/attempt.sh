# Read by the first bash of the driver's job, before Java and Python (BASH_ENV): waits after failures,
# so that a job that fails at once, a failing import included, does not use up its attempts.
unset BASH_ENV
if mkdir attempt.began 2> /dev/null; then
  for python in "$YTSTREAM_PYTHON" python3; do
    "$python" -c "" 2> /dev/null && break
    python=
  done
  index=$((${YT_TASK_JOB_INDEX:-0} > 6 ? 6 : ${YT_TASK_JOB_INDEX:-0}))
  code=0
  if test -n "$python"; then
    PYTHONPATH="$YTSTREAM_ATTEMPT${PYTHONPATH:+:$PYTHONPATH}" "$python" -m attempt "$python" 1>&2 || code=$?
  else
    echo "attempt: no Python on this node: neither $YTSTREAM_PYTHON nor python3" 1>&2
    code=4
  fi
  case $code in
    0) ;;
    3) exit 1 ;; # it has ended the operation
    *) # It could not ask the cluster: the more attempts, the longer, since nothing else is known.
      if test "$index" -gt 0; then
        echo "attempt: waiting $((5 << index)) s" 1>&2
        sleep $((5 << index))
      fi
      test "$code" -ne 4 || exit 1 ;;
  esac
fi
