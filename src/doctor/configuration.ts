// Checks the configuration: its errors with their locations, its warnings, and whether the running server uses another
// one.
import { relative } from "node:path";
import { type Config, type Problem, renderPlace } from "../config/config.ts";
import { withoutStop } from "./examine.ts";
import { type Check, type Finding, failure, ok, skipped, warning } from "./finding.ts";
import type { Subject } from "./subject.ts";

export function configurationChecks(subject: Subject): Check[] {
  return [
    { name: "configuration", run: () => configuration(subject) },
    { name: "variables", run: () => variables(subject) },
  ];
}

function configuration({ config, problems }: Subject): Finding[] {
  if (!config) return problems.map(problemFinding);
  return [
    ok("configuration", summary(config)),
    ...config.warnings.map((text) =>
      warning("configuration", withoutStop(text), "Change it, or leave it where it is meant."),
    ),
  ];
}

function problemFinding(problem: Problem): Finding {
  return failure("configuration", `${renderPlace(problem)}${problem.message}`, problem.fix);
}

function summary({ file, mode, host, port, upstreams, models, databaseUrl, redisUrl }: Config): string {
  const path = relative(process.cwd(), file.path);
  const shown = path.startsWith("..") ? file.path : path;
  const parts = [
    file.found ? `${shown} is right` : "no headrace.yaml here, so the defaults and variables hold",
    `${mode} mode on ${host.includes(":") ? `[${host}]` : host}:${port}`,
    databaseUrl === undefined ? "SQLite" : redisUrl === undefined ? "PostgreSQL" : "PostgreSQL and Redis",
    count(upstreams.length, "upstream"),
    count(models.length, "configured model"),
  ];
  return parts.join(", ");
}

export function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}

/** Variables that only commands read, and not the server. */
const ofCommands = ["HEADRACE_BASE_URL", "HEADRACE_API_KEY"];

/**
 * Compares the variables of this shell with those of the running server, because the server may have been started from
 * another shell. Only names are shown, because values may be secret.
 */
function variables({ env, server }: Subject): Finding | undefined {
  const own = namesOf(env);
  if (!server) return own.length === 0 ? undefined : ok("variables", `set here: ${own.join(", ")}`);
  const theirs = server.facts?.environment;
  if (!theirs) {
    return skipped("variables", "the variables of the running server cannot be seen by this user; root can see them");
  }
  const different = own.filter((name) => env[name] !== theirs[name]).sort();
  const taken = namesOf(theirs).filter((name) => !own.includes(name));
  if (different.length === 0) {
    const from = taken.length === 0 ? "the same here as at the running server" : "those of the running server";
    return ok("variables", taken.length === 0 ? from : `${from}: ${taken.sort().join(", ")}`);
  }
  const shown = different.map((name) => (theirs[name] === undefined ? `${name} is set only here` : name));
  return warning(
    "variables",
    `not the same here as at the running server: ${shown.join(", ")}`,
    "What follows goes by those that are set here. Unset them: the others are taken from the running server's variables.",
  );
}

function namesOf(env: Readonly<Record<string, string | undefined>>): string[] {
  return Object.keys(env).filter(
    (name) => name.startsWith("HEADRACE_") && !ofCommands.includes(name) && (env[name] ?? "") !== "",
  );
}
