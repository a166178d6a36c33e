// The package for Debian: Bun, the program with its back-end, and the unit of systemd, at the places where Debian has such.
import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { bunExecutable } from "../../bin/bun.mjs";
import { bunEnvironment } from "../../bin/bun-environment.mjs";
import packageJson from "../../package.json" with { type: "json" };
import { addBackEnd } from "./executables.ts";

const root = join(import.meta.dir, "..", "..");
const home = "/usr/lib/headrace";

/** Makes `headrace_<version>_amd64.deb` from `package/` in `release`; gives its path. Needs dpkg-deb. */
export function makeDebianPackage(release: string): string {
  const tree = join(release, "work", "debian");
  rmSync(tree, { recursive: true, force: true });
  const program = join(tree, home);
  mkdirSync(program, { recursive: true });
  cpSync(join(release, "package"), program, { recursive: true });
  rmSync(join(program, "bin"), { recursive: true });
  addBackEnd("linux-x64", release, program);
  place(join(program, "bun"), readFileSync(bunExecutable()), 0o755);
  place(join(tree, "usr", "bin", "headrace"), launcher(), 0o755);
  place(join(tree, "usr", "share", "doc", "headrace", "copyright"), readFileSync(join(root, "LICENSE")), 0o644);
  place(join(tree, "lib", "systemd", "system", "headrace.service"), unit(), 0o644);
  place(join(tree, "etc", "headrace", "environment"), environment, 0o600);
  place(join(tree, "DEBIAN", "conffiles"), "/etc/headrace/environment\n", 0o644);
  place(join(tree, "DEBIAN", "control"), control(tree), 0o644);
  for (const [name, script] of Object.entries(scripts)) place(join(tree, "DEBIAN", name), script, 0o755);
  openDirectories(tree);
  const file = join(release, `headrace_${packageJson.version}_amd64.deb`);
  const built = join(release, "work", "headrace.deb");
  // Gzip: xz takes 40 s more for a fifth less.
  execFileSync("dpkg-deb", ["--root-owner-group", "-Zgzip", "-z6", "--build", tree, built], {
    env: { ...process.env, SOURCE_DATE_EPOCH: "0" },
    stdio: ["ignore", "ignore", "inherit"],
  });
  renameSync(built, file);
  rmSync(tree, { recursive: true });
  return file;
}

const environment = `# Variables of the service, NAME=value a line, secrets too: HEADRACE_PUBLIC_URL=https://ai.example.com
# Afterwards: systemctl restart headrace
`;

/** What the launcher of the package for npm sets, where there is no Node. */
function launcher(): string {
  const settings = ["MIMALLOC_PURGE_DELAY", "MIMALLOC_PURGE_HOLES_MIN_INTERVAL", "BUN_CONFIG_MAX_HTTP_REQUESTS"];
  const values = bunEnvironment();
  const lines = settings.map((name) => `export ${name}=${values[name]}\n`).join("");
  return `#!/bin/sh\n# Starts Headrace as its launcher does for npm.\n${lines}exec ${home}/bun ${home}/app/main.js "$@"\n`;
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

function control(tree: string): string {
  const kilobytes = execFileSync("du", ["-sk", "--apparent-size", tree], { encoding: "utf8" }).split("\t")[0];
  return `Package: headrace
Version: ${packageJson.version}
Architecture: amd64
Maintainer: The Headrace authors <headrace@localhost>
Installed-Size: ${kilobytes}
Depends: libc6 (>= 2.34), libgcc-s1, libstdc++6, passwd
Section: net
Priority: optional
Description: ${packageJson.description}
`;
}

/** Where systemd does not run, as in an image, it is neither told nor asked. */
const scripts = {
  postinst: `#!/bin/sh
set -e
if [ "$1" = configure ]; then
  if ! getent passwd headrace >/dev/null; then
    useradd --system --user-group --home-dir /var/lib/headrace --shell /usr/sbin/nologin headrace
  fi
  install -d -o headrace -g headrace -m 0700 /var/lib/headrace
  if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    systemctl enable headrace
    systemctl restart headrace
  fi
fi
`,
  prerm: `#!/bin/sh
set -e
if [ -d /run/systemd/system ] && [ "$1" = remove ]; then
  systemctl disable --now headrace
fi
`,
  // The user owns what is left: it goes with the data.
  postrm: `#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
if [ "$1" = purge ]; then
  rm -rf /var/lib/headrace /etc/headrace
  if getent passwd headrace >/dev/null; then userdel headrace; fi
fi
`,
};

function place(path: string, content: string | Uint8Array, mode: number): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  chmodSync(path, mode);
}

/** The modes of directories are in the package, whatever the mask of who builds it. */
function openDirectories(directory: string): void {
  chmodSync(directory, 0o755);
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    if (entry.isDirectory()) openDirectories(join(directory, entry.name));
  }
}
