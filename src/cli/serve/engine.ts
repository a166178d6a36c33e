// `headrace engine`: installs, lists and removes back-ends of the built-in engine.
import { formatBytes } from "../../engines/llama/byte-size.ts";
import {
  availableBackends,
  type BackendRecord,
  backends,
  currentPlatform,
  defaultInstallComputes,
  installedEngine,
  libraryVersion,
  listBackends,
  removeBackend,
} from "../../engines/llama/engine-backends.ts";
import { type InstallObserver, type InstallPlan, installBackend } from "../../engines/llama/engine-install.ts";
import { command, dataDirOption } from "../command.ts";
import type { CliContext } from "../terminal/context.ts";
import { type CliInput, confirm } from "../terminal/input.ts";
import { type Progress, startProgress } from "../terminal/progress.ts";
import { CliError, formatTable, interruptible, printable, type Terminal } from "../terminal/terminal.ts";

const installHelp = `\
Back-ends:
  cuda     NVIDIA GPUs; needs their driver
  vulkan   GPUs of AMD, Intel, NVIDIA and others; needs their driver and the Vulkan loader
  cpu      no GPU; part of the default install, except on Linux on ARM

Examples:
  headrace engine install vulkan
  headrace engine install cuda

For a GPU back-end, the command first shows whether a device is found and how much it will
download, and asks. Without a terminal it needs --yes, for example in a script or in the
build of an image, where the device is often missing.

npm does the download, with its settings for registries and proxies. After you install a
driver, run the command again: it looks for devices and downloads nothing.`;

const nameArgument = ["<name>", backends.join(", ")] as const;

const installCommand = command({
  name: "install",
  summary: "install a back-end",
  description: "Install a back-end into the data directory and see whether a device answers.",
  arguments: [nameArgument],
  options: { yes: ["-y, --yes", "do not ask before the download"], ...dataDirOption },
  help: [installHelp],
  run: ({ context, options }, name) => install(context, name, options),
});

const listCommand = command({
  name: "list",
  summary: "list the back-ends for this machine",
  description: "List the back-ends that exist for this machine, and which are installed.",
  options: dataDirOption,
  help: ["Example:\n  headrace engine list"],
  run: ({ context, options }) => list(context, options),
});

const removeCommand = command({
  name: "remove",
  summary: "remove a back-end",
  description: "Remove an installed back-end from the data directory.",
  arguments: [nameArgument],
  options: dataDirOption,
  help: ["Example:\n  headrace engine remove cuda"],
  async run({ context, options, terminal }, name) {
    const dataDir = await context.dataDir(options.dataDir);
    if (!(await removeBackend(dataDir, name))) throw new CliError(`Back-end ${name} is not installed.`);
    terminal.print(`Back-end ${name} is removed. A running headrace serve keeps it until it is started again.`);
  },
});

export const engineCommand = command({
  name: "engine",
  summary: "install, list and remove back-ends of the built-in engine",
  description:
    "Manage back-ends of the built-in engine. The default install computes on the CPU. A GPU needs one of these.",
  commands: [installCommand, listCommand, removeCommand],
});

async function install(context: CliContext, name: string, options: { dataDir?: string; yes?: boolean }): Promise<void> {
  const { terminal, env } = context;
  const dataDir = await context.dataDir(options.dataDir);
  const view = new InstallView(context, options.yes);
  try {
    const { record, alreadyThere } = await interruptible((signal) =>
      installBackend({ name, dataDir, env, signal }, view),
    );
    const state = alreadyThere ? "was installed already." : `is installed, ${formatBytes(record.bytes)}.`;
    terminal.print(terminal.out.green(`Back-end ${record.backend} ${state}`));
    for (const line of deviceLines(record)) terminal.print(line);
    terminal.print("To use it, start headrace serve, or start it again.");
  } finally {
    view.end();
  }
}

function deviceLines({ backend, devices }: BackendRecord): string[] {
  if (backend === "cpu") return ["It computes on the CPU."];
  if (devices.length > 0) return [`Devices that answer: ${devices.map(printable).join(", ")}.`];
  const need = backend === "cuda" ? "an NVIDIA GPU and its driver" : "a GPU, its driver and the Vulkan loader";
  return [
    `No ${backend} device answers on this machine, so the CPU is used.`,
    `It takes ${need}. Once they are there: headrace engine install ${backend}`,
  ];
}

class InstallView implements InstallObserver {
  readonly #terminal: Terminal;
  readonly #input: CliInput;
  readonly #yes: boolean | undefined;
  #progress: Progress | undefined;

  constructor({ terminal, input }: CliContext, yes: boolean | undefined) {
    this.#terminal = terminal;
    this.#input = input;
    this.#yes = yes;
  }

  async planned({ backend, packages, bytes, device: { seen, searched } }: InstallPlan): Promise<void> {
    const { bold, yellow } = this.#terminal.err;
    const note = (line: string) => this.#terminal.note(line);
    if (seen !== undefined) note(`A device for ${backend} seems to be here: ${seen}.`);
    else if (searched.length > 0) {
      note(yellow(`No device for ${backend} is to be seen on this machine: there is no ${searched.join(" or ")}.`));
      note("Without a device, the CPU computes as before.");
    }
    const size = formatBytes(bytes);
    // The CPU build is small and every back-end needs it, so it is installed without a question.
    if (backend !== "cpu") {
      const question = `Fetch ${packages.join(", ")} and the library, about ${size} on disk${seen === undefined ? ", all the same" : ""}`;
      await confirm(this.#input, { question, canBeUndone: true, yes: this.#yes });
    }
    note(`Installing ${bold(packages.join(", "))} and the library: about ${size} on disk.`);
    this.#progress = startProgress(this.#terminal, { totalBytes: bytes });
    this.#progress.update(0);
  }

  progress(bytes: number): void {
    this.#progress?.update(bytes);
  }

  checking(): void {
    this.#progress?.stop(true);
    this.#terminal.note("Starting the library to see what answers…");
  }

  end(): void {
    this.#progress?.stop(true);
  }
}

async function list(context: CliContext, options: { dataDir?: string }): Promise<void> {
  const { terminal } = context;
  const dataDir = await context.dataDir(options.dataDir);
  const installed = await listBackends(dataDir);
  const used = await installedEngine(dataDir);
  const byDefault = defaultInstallComputes(currentPlatform());
  const available = availableBackends(currentPlatform());
  const names = backends.filter((name) => available.includes(name) || installed.some((one) => one.backend === name));
  if (names.length === 0) {
    terminal.note(`There are no back-ends to install for ${currentPlatform()}: the default install is all there is.`);
    return;
  }
  const rows = names.map((name) => {
    const record = installed.find((one) => one.backend === name);
    if (record === undefined && name === "cpu" && byDefault) {
      return [name, used === undefined ? "in use" : "installed", "-", "CPU, in the default install"];
    }
    if (record === undefined) return [name, "not installed", "-", "-"];
    const outdated = record.version !== libraryVersion;
    const status = outdated ? "outdated" : used?.backend === name ? "in use" : "installed";
    return [name, status, formatBytes(record.bytes), name === "cpu" ? "CPU" : record.devices.join(", ") || "none: CPU"];
  });
  terminal.print(formatTable(["BACK-END", "STATUS", "SIZE", "DEVICES"], rows, terminal.out));
  if (used === undefined && !byDefault) {
    terminal.note("The built-in engine has no back-end on this machine yet: headrace engine install cpu");
  }
  for (const { backend, version } of installed) {
    if (version === libraryVersion) continue;
    terminal.note(
      `${backend} is of version ${version}; this Headrace needs ${libraryVersion}: headrace engine install ${backend}`,
    );
  }
}
