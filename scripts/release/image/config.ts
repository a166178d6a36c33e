// What an image of Headrace says of itself: how it is started, as whom, and how its health is asked.
import { bunSettings } from "../../../bin/bun-environment.mjs";
import packageJson from "../../../package.json" with { type: "json" };

/** Who it runs as, and whose `/data` is: no other files of the image may be written by it. */
export const user = 10_001;

export const environment = {
  PATH: "/usr/local/bin:/usr/bin:/bin",
  ...bunSettings,
  // Without it Bun writes beside the program.
  BUN_RUNTIME_TRANSPILER_CACHE_PATH: "0",
  HEADRACE_HOST: "0.0.0.0",
  HEADRACE_MODE: "production",
  HEADRACE_DATA_DIR: "/data",
  HEADRACE_LOG_FORMAT: "json",
};

export const labels = {
  "org.opencontainers.image.title": "Headrace",
  "org.opencontainers.image.description": packageJson.description,
  "org.opencontainers.image.licenses": packageJson.license,
};

export const seconds = 1_000_000_000;

/** The members that OCI images have, and `Healthcheck`, which is Docker's: it reads that in images of either form. */
export const config = {
  User: `${user}:${user}`,
  ExposedPorts: { "7545/tcp": {} },
  Env: Object.entries(environment).map(([name, value]) => `${name}=${value}`),
  Entrypoint: ["headrace"],
  Cmd: ["serve"],
  Volumes: { "/data": {} },
  WorkingDir: "/data",
  StopSignal: "SIGTERM",
  Healthcheck: {
    Test: ["CMD", "bun", "/opt/headrace/health-check.ts"],
    Interval: 10 * seconds,
    Timeout: 3 * seconds,
    StartPeriod: 60 * seconds,
  },
};
