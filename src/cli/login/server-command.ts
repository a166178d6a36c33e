// Commands that talk to a server. They have options to choose the server, and connect at their first request.
import type {
  ArgumentEntry,
  ArgumentValues,
  Call,
  CommandEntry,
  CommandFields,
  MaybeOutcome,
  OptionEntries,
  OptionValues,
} from "../command.ts";
import { interruptible } from "../terminal/terminal.ts";
import { type ApiRequest, requestJson } from "./api-request.ts";
import { type ConnectionOptions, connectionHelp, connectionOptions, findConnection } from "./client.ts";
import type { Connection } from "./connection.ts";

export interface ServerCall<Values> extends Call<Values> {
  /** Connects to the chosen server at the first call. */
  connect(): Promise<Connection>;
  /** Runs `work` with the connection. Ctrl-C aborts its signal. */
  ask<Result>(work: (connection: Connection, signal: AbortSignal) => Promise<Result>): Promise<Result>;
  /** Returns the JSON of a successful response; `path` is below `/v1`. Rejects with an ApiError or CliError. */
  request(path: string, request?: ApiRequest): Promise<unknown>;
}

/** Returns the description of a command that talks to a server. Adds the options and help of the connection. */
export function serverCommand<
  const Options extends OptionEntries = Record<never, never>,
  const Args extends readonly ArgumentEntry[] = [],
>(
  entry: CommandFields<Options, Args> & {
    run(
      call: ServerCall<OptionValues<Options & typeof connectionOptions>>,
      ...args: ArgumentValues<Args>
    ): Promise<MaybeOutcome>;
  },
): CommandEntry {
  const { options, help = [] } = entry;
  const made = {
    ...entry,
    options: { ...options, ...connectionOptions },
    help: [...help, connectionHelp],
    run: (call: Call<never>, ...args: never[]) => entry.run(withServer(call) as never, ...(args as never)),
  };
  return made as CommandEntry;
}

function withServer<Values extends ConnectionOptions>(call: Call<Values>): ServerCall<Values> {
  let connection: Promise<Connection> | undefined;
  const connect = () => (connection ??= findConnection(call.context, call.options));
  const ask: ServerCall<Values>["ask"] = async (work) => {
    const connected = await connect();
    return interruptible((signal) => work(connected, signal));
  };
  return {
    ...call,
    connect,
    ask,
    request: (path, request) => ask((connected, signal) => requestJson(connected, path, signal, request)),
  };
}
