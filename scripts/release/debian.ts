// The package for Debian: Bun, the program with its back-end, and the unit of systemd, at the places where Debian has such.
import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { bunExecutable } from "../../bin/bun.mjs";
import { bunSettings } from "../../bin/bun-environment.mjs";
import packageJson from "../../package.json" with { type: "json" };
import { addBackEnd } from "./executables.ts";
import { bunForArm64 } from "./targets.ts";
import { modifiedAt } from "./time.ts";

const root = join(import.meta.dir, "..", "..");
const home = "/usr/lib/headrace";

const systems = {
  amd64: { target: "linux-x64", bun: bunExecutable },
  arm64: { target: "linux-arm64", bun: bunForArm64 },
} as const;

/** Makes `headrace_<version>_<architecture>.deb` from `package/` in `release`; gives its path. Needs dpkg-deb. */
export function makeDebianPackage(release: string, architecture: keyof typeof systems): string {
  const { target, bun } = systems[architecture];
  const tree = join(release, "work", "debian");
  rmSync(tree, { recursive: true, force: true });
  const program = join(tree, home);
  mkdirSync(program, { recursive: true });
  cpSync(join(release, "package"), program, { recursive: true });
  rmSync(join(program, "bin"), { recursive: true });
  addBackEnd(target, release, program);
  place(join(program, "bun"), readFileSync(bun(release)), 0o755);
  place(join(tree, "usr", "bin", "headrace"), launcher(), 0o755);
  placeDocuments(tree);
  place(join(tree, "lib", "systemd", "system", "headrace.service"), unit(), 0o644);
  place(join(tree, "etc", "headrace", "environment"), environment, 0o644);
  place(join(tree, "DEBIAN", "conffiles"), "/etc/headrace/environment\n", 0o644);
  place(join(tree, "DEBIAN", "control"), control(tree, architecture), 0o644);
  for (const [name, script] of Object.entries(scripts)) place(join(tree, "DEBIAN", name), script, 0o755);
  // The modes of a clone are those of its owner's mask.
  execFileSync("chmod", ["-R", "u=rwX,go=rX", tree]);
  chmodSync(join(tree, "etc", "headrace", "environment"), 0o600);
  const file = join(release, `headrace_${packageJson.version}_${architecture}.deb`);
  const built = join(release, "work", "headrace.deb");
  // Gzip: xz takes 40 s more for a fifth less.
  execFileSync("dpkg-deb", ["--root-owner-group", "-Zgzip", "-z6", "--build", tree, built], {
    env: { ...process.env, SOURCE_DATE_EPOCH: String(modifiedAt()) },
    stdio: ["ignore", "ignore", "inherit"],
  });
  renameSync(built, file);
  rmSync(tree, { recursive: true });
  return file;
}

/** What Debian's policy wants to be told, and what its checker is told of the programs of others. */
function placeDocuments(tree: string): void {
  const share = join(tree, "usr", "share");
  place(join(share, "doc", "headrace", "copyright"), copyright, 0o644);
  place(join(share, "doc", "headrace", "changelog.gz"), gzipSync(changelog(), { level: 9 }), 0o644);
  place(join(share, "lintian", "overrides", "headrace"), overrides, 0o644);
}

const copyright = `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Headrace
Comment: The packages in it have licences of their own: ${home}/THIRD-PARTY-LICENSES

Files: *
Copyright: ${packageJson.author.replace(/ <.*/, "")}
License: Apache-2.0
 On Debian systems, its text is in /usr/share/common-licenses/Apache-2.0.
`;

function changelog(): string {
  const date = new Date(modifiedAt() * 1000).toUTCString().replace("GMT", "+0000");
  return `headrace (${packageJson.version}) unstable; urgency=medium

  * CHANGELOG.md of the sources says what is new.

 -- ${packageJson.author}  ${date}
`;
}

const overrides = `# Bun and llama.cpp as their makers publish and sign for them.
headrace: unstripped-binary-or-object
headrace: embedded-library
# Secrets may be in it.
headrace: non-standard-file-perm
`;

const variables = "/etc/headrace/environment";
const dataDir = "/var/lib/headrace";

const environment = `# Variables of the service, NAME=value a line, secrets too: HEADRACE_PUBLIC_URL=https://ai.example.com
# Afterwards: systemctl restart headrace
`;

/**
 * What the launcher of the package for npm sets, where there is no Node. Root and the service's user ask about the service,
 * unless they name another place.
 */
function launcher(): string {
  const lines = Object.entries(bunSettings)
    .map(([name, value]) => `export ${name}=${value}\n`)
    .join("");
  return `#!/bin/sh
# Starts Headrace as its launcher does for npm.
${lines}program="${home}/bun ${home}/app/main.js"
case " $* " in *" --data-dir"* | *" --config"* | *" --clients "*) exec $program "$@" ;; esac
case "$1:$(id -un)" in
  doctor:root | setup-link:root | operator-key:root) drop="setpriv --reuid=headrace --regid=headrace --init-groups --" ;;
  doctor:headrace | setup-link:headrace | operator-key:headrace) drop="" ;;
  *) exec $program "$@" ;;
esac
# The command is about the service: its user, its folder and its variables, which only root can read.
export HEADRACE_MODE=production HEADRACE_DATA_DIR=${dataDir} HOME=${dataDir}
if [ -r ${variables} ]; then
  while IFS= read -r line || [ -n "$line" ]; do
    name=\${line%%=*}
    value=\${line#*=}
    case "$name" in "$line" | "" | [0-9]* | *[!A-Za-z0-9_]*) continue ;; esac
    case "$value" in \\"*\\" | \\'*\\') value=\${value#?} && value=\${value%?} ;; esac
    export "$name=$value"
  done <${variables}
fi
cd ${dataDir}
exec $drop $program "$@"
`;
}

/** That of deploy/, with what is elsewhere here. */
function unit(): string {
  const text = readFileSync(join(root, "deploy", "headrace.service"), "utf8");
  const own = text
    .replace(/^#.*\n(?:#.*\n)*/, "# Headrace as a service of systemd; /etc/headrace/environment has its variables.\n")
    .replace(/^Documentation=.*\n/m, "")
    .replace(/^ExecStart=.*$/m, "ExecStart=/usr/bin/headrace serve")
    .replace(/^# The launcher passes the signal on; open/m, "# Open");
  if (!own.includes("ExecStart=/usr/bin/headrace serve\n"))
    throw new Error("deploy/headrace.service has no ExecStart.");
  return own;
}

function control(tree: string, architecture: string): string {
  const kilobytes = execFileSync("du", ["-sk", "--apparent-size", tree], { encoding: "utf8" }).split("\t")[0];
  return `Package: headrace
Version: ${packageJson.version}
Architecture: ${architecture}
Maintainer: ${packageJson.author}
Installed-Size: ${kilobytes}
Depends: libc6 (>= 2.34), libgcc-s1, libstdc++6, passwd
Section: net
Priority: optional
Description: model inference gateway behind one OpenAI-compatible API
 Headrace stands in front of model servers and cloud providers, and runs small
 models itself. It has keys, limits, usage and a dashboard.
`;
}

/**
 * They are what Debian's own tools write for a service: one that an administrator has disabled stays so, one that cannot start
 * does not leave the package half installed, and where systemd does not run, as in an image, it is not asked.
 */
const scripts = {
  postinst: `#!/bin/sh
set -e
if [ "$1" = configure ]; then
  if ! getent passwd headrace >/dev/null; then
    useradd --system --user-group --home-dir /var/lib/headrace --shell /usr/sbin/nologin headrace
  fi
  if [ ! -d /var/lib/headrace ]; then
    install -d -o headrace -g headrace -m 0700 /var/lib/headrace
  fi
  if deb-systemd-helper --quiet was-enabled headrace.service; then
    deb-systemd-helper enable headrace.service >/dev/null || true
  else
    deb-systemd-helper update-state headrace.service >/dev/null || true
  fi
  if [ -d /run/systemd/system ]; then
    systemctl --system daemon-reload >/dev/null || true
  fi
  # A drop-in of the unit may have the address: a service that runs is restarted whatever the file says.
  if [ -n "$2" ] && [ -d /run/systemd/system ] && systemctl --quiet is-active headrace.service; then
    deb-systemd-invoke restart headrace.service || true
  elif ! grep -Eqs '^HEADRACE_(PUBLIC_URL|CONFIG|MODE)=.' ${variables}; then
    echo "headrace is not started yet. Set HEADRACE_PUBLIC_URL in ${variables}, then: systemctl start headrace"
  elif [ -d /run/systemd/system ]; then
    if [ -n "$2" ]; then action=restart; else action=start; fi
    deb-systemd-invoke $action headrace.service || true
  fi
fi
`,
  prerm: `#!/bin/sh
set -e
if [ -d /run/systemd/system ] && [ "$1" = remove ]; then
  deb-systemd-invoke stop headrace.service || true
fi
`,
  // The user owns what is left: it goes with the data. What is mounted, or runs as that user, does not hold up the rest.
  postrm: `#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then systemctl --system daemon-reload >/dev/null || true; fi
if [ "$1" = purge ]; then
  if [ -x /usr/bin/deb-systemd-helper ]; then deb-systemd-helper purge headrace.service >/dev/null || true; fi
  rm -rf /var/lib/headrace /etc/headrace || true
  if getent passwd headrace >/dev/null; then userdel headrace || true; fi
fi
`,
};

function place(path: string, content: string | Uint8Array, mode: number): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  chmodSync(path, mode);
}
