#!/bin/sh
# with-engine.sh COMMAND…: runs COMMAND with a container engine.
#
# Where one can be reached, that one. Else, on Debian as root: installs Debian's engine, starts it by hand, and ends it again afterwards.
# An image that this engine can neither find nor pull is made here from Debian's packages and the machine's own npm (images.sh), from the
# mirrors and settings that the machine has. What was made stays in $DIR for the next time; remove the folder to be rid of it.
set -eu
HERE=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
DIR=${TREADLE_ENGINE_DIR:-${TMPDIR:-/tmp}/treadle-engine}

say() { printf 'with-engine: %s\n' "$*" >&2; }

if docker version >/dev/null 2>&1; then exec "$@"; fi
[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 || { say "no container engine can be reached, and only root on Debian can start one here"; exit 3; }

export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
missing=
command -v dockerd >/dev/null 2>&1 || missing="$missing docker.io"
command -v iptables >/dev/null 2>&1 || missing="$missing iptables"
command -v debootstrap >/dev/null 2>&1 || missing="$missing debootstrap"
if [ -n "$missing" ]; then
  say "installing$missing"
  # shellcheck disable=SC2086
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing; } >/dev/null
fi

mkdir -p "$DIR/config"
export DOCKER_HOST="unix://$DIR/docker.sock" DOCKER_CONFIG="$DIR/config"
bridged=$(ip link show docker0 2>/dev/null || true)
say "starting an engine in $DIR"
dockerd --data-root "$DIR/data" --exec-root "$DIR/exec" -H "$DOCKER_HOST" --pidfile "$DIR/dockerd.pid" >"$DIR/dockerd.log" 2>&1 &
engine=$!
stop() {
  kill "$engine" 2>/dev/null || true
  wait "$engine" 2>/dev/null || true
  # The engine leaves its bridge behind.
  [ -n "$bridged" ] || ip link del docker0 2>/dev/null || true
}
trap stop EXIT
trap 'exit 130' INT TERM
tries=0
until docker version >/dev/null 2>&1; do
  tries=$((tries + 1))
  [ "$tries" -lt 60 ] && kill -0 "$engine" 2>/dev/null || { say "the engine did not start:"; tail -n 5 "$DIR/dockerd.log" >&2; exit 3; }
  sleep 1
done

sh "$HERE/images.sh" "$DIR"
"$@"
