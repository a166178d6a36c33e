// The protocol's official conformance suite, as a program of its makers, against an endpoint: what it found, check by check.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { programsFolder } from "../../../scripts/test-programs.mjs";

/** Its version, of which the reports tell. */
export const conformanceVersion = "0.2.0-alpha.12";
const program = join(programsFolder, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js");

/** What became of one check, of which a scenario has many. */
export interface Check {
  scenario: string;
  id: string;
  status: string;
  error: string;
}

export interface Report {
  checks: Check[];
  /** By scenario and check, what failed, with the reason. */
  failed: string[];
  /** What the program printed. */
  text: string;
  exitCode: number;
}

export interface ConformanceOptions {
  /** The program's variables besides. */
  environment?: Readonly<Record<string, string>>;
  /** Is shown all that was printed so far, each time that there is more. */
  onOutput?(text: string): void;
}

/** `args`: those of the program, but for where it puts what it found. */
export async function runConformance(
  args: readonly string[],
  { environment = {}, onOutput }: ConformanceOptions = {},
): Promise<Report> {
  const folder = mkdtempSync(join(tmpdir(), "headrace-conformance-"));
  try {
    const child = Bun.spawn([process.execPath, program, ...args, "-o", folder], {
      env: { PATH: process.env["PATH"] ?? "", HOME: folder, ...environment },
      stdout: "pipe",
      stderr: "pipe",
      stdin: "ignore",
    });
    let text = "";
    const read = async (stream: ReadableStream<Uint8Array<ArrayBuffer>>) => {
      for await (const piece of stream.pipeThrough(new TextDecoderStream())) {
        text += piece;
        onOutput?.(text);
      }
    };
    await Promise.all([read(child.stdout), read(child.stderr)]);
    const exitCode = await child.exited;
    const checks = checksOf(folder);
    const failed = checks
      .filter(({ status }) => status === "FAILURE")
      .map(({ scenario, id, error }) => `${scenario}:${id} ${error}`.trim());
    return { checks, failed: failed.sort(), text, exitCode };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function checksOf(folder: string): Check[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith("checks.json"))
    .flatMap((path) => {
      // The folder is called after the scenario and the time.
      const scenario = (path.split("/").at(-2) ?? "")
        .replace(/^(?:authorization-)?server-/, "")
        .replace(/-\d{4}-\d\d-\d\dT.*$/, "");
      const found = JSON.parse(readFileSync(join(folder, path), "utf8")) as Partial<Record<string, string>>[];
      return found.map(({ id = "", status = "", errorMessage = "" }) => ({
        scenario,
        id,
        status,
        error: errorMessage,
      }));
    });
}
