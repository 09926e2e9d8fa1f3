#!/bin/sh
# images.sh DIR: makes stand-ins for the public images that the containers and their tests are built from, where they can neither be found nor
# pulled, under the same names. DIR holds what is made on the way. Debian's mirror is the one that apt uses here, npm's settings are npm's.
set -eu
DIR=$1
HERE=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

say() { printf 'images: %s\n' "$*" >&2; }
have() { docker image inspect "$1" >/dev/null 2>&1; }
mirror() { apt-get indextargets --format '$(SITE) $(RELEASE)' 'Created-By: Packages' | awk -v suite="$1" '$2 == suite { print $1; exit }'; }

. /etc/os-release
SUITE=bookworm
MIRROR=$(mirror "$VERSION_CODENAME")
[ -n "$MIRROR" ] || { say "apt has no mirror for $VERSION_CODENAME"; exit 3; }

compose() {
  docker compose version >/dev/null 2>&1 && return
  say "fetching compose and its builder (Debian 13's packages; Debian 12 has none)"
  apt="$DIR/apt"
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/unpacked" "$DOCKER_CONFIG/cli-plugins"
  keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  echo "deb [signed-by=$keyring] $MIRROR trixie main" >"$apt/sources.list"
  options="-o Dir::Etc::sourcelist=$apt/sources.list -o Dir::Etc::sourceparts=/nonexistent -o Dir::State::lists=$apt/lists -o Dir::Cache=$apt/cache -o APT::Sandbox::User=root"
  # shellcheck disable=SC2086
  (cd "$apt" && apt-get $options update -qq && apt-get $options download -qq docker-compose docker-buildx)
  for package in "$apt"/*.deb; do dpkg -x "$package" "$apt/unpacked"; done
  find "$apt/unpacked" -type f -perm -u+x \( -name docker-compose -o -name docker-buildx \) -exec cp {} "$DOCKER_CONFIG/cli-plugins/" \;
}

debian() {
  root="$DIR/debian"
  rm -rf "$root"
  say "debian:$SUITE-slim from packages"
  debootstrap --variant=minbase "$SUITE" "$root" "$MIRROR" >"$DIR/debootstrap.log"
  # As the real one: without documentation, lists and caches.
  rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/usr/share/doc/* "$root"/usr/share/man/* "$root"/usr/share/info/* "$root"/usr/share/locale/* "$root"/var/log/*
  tar -C "$root" -c . | docker import - "debian:$SUITE-slim" >/dev/null
  rm -rf "$root"
}

# From the Node.js and npm of this machine, with the certificates that they need here.
node() {
  context="$DIR/node"
  rm -rf "$context" && mkdir -p "$context"
  say "node:24-$SUITE-slim from $(node_binary)"
  cp "$(node_binary)" "$context/node"
  cp -a "$(dirname -- "$(dirname -- "$(realpath "$(command -v npm)")")")" "$context/npm"
  printf 'registry=%s\n' "$(npm config get registry)" >"$context/npmrc"
  cp /etc/ssl/certs/ca-certificates.crt "$context/ca-certificates.crt"
  docker build -q -f "$HERE/stand-ins/node.Dockerfile" -t "node:24-$SUITE-slim" "$context" >/dev/null
  rm -rf "$context"
}
node_binary() { command node -p 'process.version.startsWith("v24.") ? process.execPath : (console.error("Node.js 24 is needed"), process.exit(3))'; }

stand_in() {
  say "$1 from packages"
  docker build -q -f "$HERE/stand-ins/$2.Dockerfile" -t "$1" "$HERE/stand-ins" >/dev/null
}

# The images that docker-compose.yml names; the node image and what it is built on come first.
image_of() { sed -n "s|^ *image: \($1:[^ ]*\)\$|\1|p" "$HERE/../../docker-compose.yml" | head -n 1; }

# One answer tells whether there is a registry to pull from.
if ! have "debian:$SUITE-slim" && ! timeout 60 docker pull -q "debian:$SUITE-slim" >/dev/null 2>&1; then debian; touch "$DIR/no-registry"; fi
compose
if [ -f "$DIR/no-registry" ]; then
  have "node:24-$SUITE-slim" || node
  for each in redis:redis chrislusf/seaweedfs:seaweedfs prom/prometheus:prometheus; do
    image=$(image_of "${each%:*}")
    have "$image" || stand_in "$image" "${each##*:}"
  done
fi
