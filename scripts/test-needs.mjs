// What a test file needs beside npm packages: Debian packages, the built dashboard and guides, installed programs.
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { root } from "./setup.mjs";

/**
 * Debian packages, each with where its executable is (names on the PATH or patterns of paths) and the word by which test
 * files name it.
 */
const debianPackages = [
  { name: "curl", places: "curl", word: /\bcurl\b/ },
  // Tests of upgrades run programs of the history.
  { name: "git", places: "git", word: /["']git["']|earlier-programs/ },
  { name: "openssl", places: "openssl", word: /\bopenssl\b/ },
  { name: "strace", places: "strace", word: /\bstrace\b/ },
  { name: "zsh", places: "zsh", word: /\bzsh\b/ },
  { name: "fish", places: "fish", word: /\bfish\b/ },
  { name: "chromium-headless-shell", places: "chromium-headless-shell", word: /\bchromium\b/ },
  { name: "iproute2", places: "ip", word: /\bnft\b/ },
  { name: "nftables", places: "nft", word: /\bnft\b/ },
  { name: "prometheus", places: "promtool", word: /\bpromtool\b/ },
  { name: "prometheus-alertmanager", places: "amtool", word: /\bamtool\b/ },
  { name: "mmdebstrap", places: "mmdebstrap", word: /\b(?:smallDebian|debianWith\w+)\b/ },
  { name: "umoci", places: "umoci", word: /\bumoci\b/ },
  { name: "lintian", places: "lintian", word: /\blintian\b/ },
  { name: "systemd", places: "systemd-analyze", word: /\bsystemd-analyze\b/ },
  { name: "runc", places: "/usr/sbin/runc runc", word: /\brunc\b/ },
  // The long form alone needs it.
  { name: "qemu-user-static", places: "qemu-aarch64-static", word: /\bqemu\b/, long: true },
  // Debian keeps it off the PATH of people.
  { name: "nginx", places: "/usr/sbin/nginx nginx", word: /\bnginx\b/ },
  { name: "redis-server", places: "redis-server", word: /\bredis-server\b/ },
  // Debian keeps it off the PATH.
  { name: "postgresql", places: "/usr/lib/postgresql/*/bin/postgres postgres", word: /\binitdb\b/ },
  // Debian has Python without what makes environments of it.
  {
    name: "python3-venv",
    places: "$(python3 -c 'import ensurepip; print(ensurepip.__file__)' 2>/dev/null) python3-without-venv",
    word: /\b(?:pythonFolder|deployTools)\b/,
  },
];

/** What this repository builds or installs for tests, by the word that test files name it by. */
const ownParts = {
  // People whom tests set up land on the dashboard.
  dashboard: /\bchromium\b|"dist"|"\/dashboard\b|\/browser\.ts"/,
  guides: /\bchromium\b|"dist"|["`]\/docs\b/,
  programs: /\b(?:programsFolder|pythonFolder)\b/,
  deployTools: /\bdeployTools\b/,
  smallDebians: /\b(?:smallDebian|debianWith\w+)\b/,
  npms: /\b(?:npmsFolder|clonePackages)\b/,
};

/**
 * What these tests need. `paths`: files or folders from the root, or parts of their names, as `bun test` takes them.
 * None: all tests. Words in a file and in the test modules that the file imports decide, so rather too much is named than
 * too little.
 * @param {readonly string[]} paths
 * @param {{ long?: boolean }} [options]
 */
export function needsOf(paths, { long = false } = {}) {
  const files = paths.flatMap(testFilesOf);
  const text = [...testModules(files)].map((file) => readFileSync(file, "utf8")).join("\n");
  const needs = (word) => paths.length === 0 || word.test(text);
  return {
    debian: Object.fromEntries(
      debianPackages.filter((one) => (long || !one.long) && needs(one.word)).map(({ places, name }) => [places, name]),
    ),
    .../** @type {Record<keyof typeof ownParts, boolean>} */ (
      Object.fromEntries(Object.entries(ownParts).map(([part, word]) => [part, needs(word)]))
    ),
  };
}

const isTest = (path) => path.endsWith(".test.ts") || path.endsWith(".test.tsx");

function testFilesOf(path) {
  const whole = join(root, path);
  if (existsSync(whole)) return statSync(whole).isFile() ? [whole] : testsBelow(whole);
  return ["src", "tests", "bench", "web"].flatMap((folder) =>
    testsBelow(join(root, folder)).filter((file) => relative(root, file).includes(path)),
  );
}

function testsBelow(folder) {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter(isTest)
    .map((name) => join(folder, name));
}

/** The files and the modules of tests and bench that they import, directly or through others. */
function testModules(files) {
  const seen = new Set(files);
  for (const file of seen) {
    for (const [, from] of readFileSync(file, "utf8").matchAll(/(?:from|import\()\s*"(\.[^"]+)"/g)) {
      const path = resolve(dirname(file), from ?? "");
      const [top = ""] = relative(root, path).split(sep);
      if ((top === "tests" || top === "bench") && existsSync(path)) seen.add(path);
    }
  }
  return seen;
}
