// Tells why npm could not install the packages, and what to do: the fault is of the lock file, the registry or this machine.

/** Each cause by the codes that npm and Node give it. The first that matches is told. */
const causes = [
  {
    code: /^(?:EUSAGE|EOVERRIDE|ERESOLVE|EJSONPARSE|ENOLOCK)$/,
    says: ({ npm }) =>
      `npm ${npm} refuses package.json or package-lock.json; the network is not the cause. If you changed either file, ` +
      "undo that (git checkout package.json package-lock.json), or write the lock file anew as CONTRIBUTING.md says " +
      "under Dependencies. If you did not, use another npm (npm install --global npm@11) and report this one.",
  },
  {
    code: /^(?:E401|E403|E404|E451|ETARGET)$/,
    says: ({ registry }) =>
      `The registry ${registry} refuses a package of the lock file or lacks it. Take another registry ` +
      "(npm config set registry …), or sign in to this one (npm login).",
  },
  {
    code: /^EINTEGRITY$/,
    says: ({ registry }) =>
      "A package does not have the checksum of the lock file. Empty npm's cache (npm cache clean --force) and try again. " +
      `If it happens again, the registry ${registry} sends something else than what was published.`,
  },
  {
    code: /^(?:ENOSPC|EDQUOT)$/,
    says: ({ root }) => `The disk of ${root} or of npm's cache is full. Free 800 MB and try again.`,
  },
  {
    code: /^(?:EACCES|EPERM|EROFS)$/,
    says: ({ root }) =>
      `This user may not write into ${root}/node_modules or into npm's cache. Run the command as the owner of both, ` +
      "or give them to this user.",
  },
  {
    code: /^(?:E407|E5\d\d|E429|ENOTFOUND|EAI_\w+|ECONN\w+|ETIMEDOUT|E\w+UNREACH|E?SOCKET\w*|ERR_(?:SOCKET|SSL|TLS|PROXY|INVALID_PROTOCOL)\w*|FETCH_ERROR|ENOTCACHED|EPROTO|\w*CERT\w*|UNABLE_TO_\w+)$/,
    says: ({ registry, code }) =>
      `The registry ${registry} could not be asked (${code}). Headrace needs it once; after that it starts offline. ` +
      "Check the network and npm's settings `registry`, `proxy`, `https-proxy`, `cafile` and `offline` (npm config list).",
  },
];

/**
 * Returns what to do after `npm ci` failed, in sentences.
 * @param {{ output: string, spawnCode?: string, node: string, npm?: string, registry?: string, root: string }} failure
 *   `output` is npm's standard error, `spawnCode` the system's code where npm could not be started
 */
export function remedyFor({ output, spawnCode, node, npm = "", registry = "of npm", root }) {
  if (spawnCode === "ENOENT") {
    return "npm is not on the PATH. It comes with Node.js; on Debian and Ubuntu it is a package of its own (apt install npm).";
  }
  if (major(node) < 20) return `Headrace needs Node.js 20 or later, and this is ${node}. Install a newer one.`;
  if (npm !== "" && major(npm) < 7) {
    return `npm ${npm} is too old for the lock file. Install the npm of Node.js 20 or later (npm install --global npm@10).`;
  }
  const code = spawnCode ?? /^npm (?:ERR!|error) code (\S+)/m.exec(output)?.[1] ?? "";
  const cause = causes.find((one) => one.code.test(code));
  return cause?.says({ npm, registry, root, code }) ?? "npm says above what is wrong. Mend that and try again.";
}

function major(version) {
  return Number.parseInt(version, 10);
}
