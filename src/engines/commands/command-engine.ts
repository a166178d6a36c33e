// An engine whose model server is a command on this machine. Its models are listed whether the command runs or not.
import { existsSync } from "node:fs";
import type { Cancellation } from "../../base/cancellation.ts";
import { exactMs } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type {
  ChatContinuation,
  CountRequest,
  Engine,
  EngineFormats,
  EngineLoad,
  EngineModel,
  EngineRequest,
  EngineResponse,
} from "../../domain/models/engine.ts";
import type { Isolation } from "../../domain/models/isolation.ts";
import type { ModelProcessControl, ModelProcessFigures, OutputLine } from "../../domain/models/model-process.ts";
import type { ModelProcessState } from "../../domain/models/model-process-state.ts";
import { isolationOf, speechOf, type UpstreamSpeech } from "../../domain/models/upstream-speech.ts";
import { redactSecrets } from "../../domain/redaction.ts";
import { Output } from "../../processes/output.ts";
import { isClosedEarly } from "../http-engine.ts";
import type { MemoryBudget } from "../memory/budget.ts";
import { UpstreamEngine } from "../upstream-engine.ts";
import { WatchedBody } from "../watched-body.ts";
import type { MemoryKnowledge } from "./memory-knowledge.ts";
import { ModelProcess } from "./model-process.ts";
import type { ServerRun } from "./server-run.ts";
import { type CommandSettings, secretsOf } from "./settings.ts";

export interface CommandEngineOptions {
  settings: CommandSettings;
  budget: MemoryBudget;
  knowledge: MemoryKnowledge;
  environment: Readonly<Record<string, string | undefined>>;
  /**
   * The absolute path of the data directory. Processes are marked with it, so that a later gateway can find and
   * end them.
   */
  dataDir: string;
  log: Log;
  nowSeconds(): number;
  /** Called once the engine accepts requests, so that waiting requests may continue. */
  onOpen(engine: CommandEngine): void;
  /** Called once the command has loaded, so that its capabilities are known. */
  onLoaded(engine: CommandEngine): void;
  stopMs?: number | undefined;
}

/** The longest wait for the model list, once the model server is ready. */
const listTimeoutMs = 5_000;
/**
 * If the model server closes a connection sooner than this, the gateway assumes that the model server did not read the
 * request.
 */
const unreadMs = 1_000;

export class CommandEngine implements Engine {
  readonly name: string;
  readonly maxConcurrency: number | undefined;
  readonly onDemand: ModelProcess;
  readonly #options: CommandEngineOptions;
  readonly #output: Output;
  /**
   * The running model server. After a stop, this remains the last server, because its list of supported formats is used
   * while the command is off.
   */
  #server: UpstreamEngine | undefined;
  #listed: readonly EngineModel[] = [];

  constructor(options: CommandEngineOptions) {
    this.#options = options;
    const { settings, budget, environment, dataDir, log, knowledge, stopMs } = options;
    this.name = settings.name;
    this.maxConcurrency = settings.parallel;
    this.#output = new Output(secretsOf(settings), options.nowSeconds);
    this.onDemand = new ModelProcess({
      ...{ settings, budget, output: this.#output, environment, dataDir, log, stopMs },
      memory: () => knowledge.of(settings),
      onReady: (run) => this.#meet(run),
      onOpen: () => options.onOpen(this),
    });
  }

  /** Returns the request settings of the command's server, such as its API. */
  get speech(): UpstreamSpeech {
    return speechOf(this.#options.settings);
  }

  /** Returns the isolation of the command's server, which runs on this machine. */
  get isolation(): Isolation {
    return isolationOf(this.speech, true);
  }

  get formats(): EngineFormats | undefined {
    return this.#server?.formats;
  }

  continues(model: string): ChatContinuation | undefined {
    return this.#server?.continues(model);
  }

  async send(request: EngineRequest, cancellation: Cancellation): Promise<EngineResponse> {
    const run = this.onDemand.serving;
    if (!run || !this.#server) throw this.onDemand.refusal();
    const sentMs = exactMs();
    let { signs } = run;
    const arrived = () => {
      signs = run.gaveSign();
    };
    const failed = (error: unknown): unknown => {
      if (error instanceof GatewayError && error.code === "upstream_timeout") void this.onDemand.timedOut(run, signs);
      return error;
    };
    try {
      const response = await this.#server.send(request, cancellation);
      arrived();
      return { ...response, body: new WatchedBody(response.body, { arrived, failed }) };
    } catch (error) {
      const mayHaveEnded = isClosedEarly(error) && exactMs() - sentMs < unreadMs;
      if (mayHaveEnded && (await this.onDemand.hasEnded(run))) throw this.onDemand.refusal();
      throw failed(error);
    }
  }

  /**
   * Returns the configured models, with what the server reported about them when it last started. Empty if a required
   * file is missing.
   */
  async models(): Promise<EngineModel[]> {
    const { models, files = [] } = this.#options.settings;
    if (!files.every((file) => existsSync(file))) return [];
    return models.map((id) => this.#listed.find((model) => model.id === id) ?? { id });
  }

  processState(): ModelProcessState {
    return this.onDemand.figures().state;
  }

  /** Returns the server's token count, or undefined if the command is not loaded: counting tokens does not load it. */
  async countTokens(request: CountRequest, cancellation: Cancellation): Promise<number | undefined> {
    return this.onDemand.serving ? await this.#server?.countTokens(request, cancellation) : undefined;
  }

  async load(signal: AbortSignal): Promise<EngineLoad | undefined> {
    if (!this.onDemand.serving || !this.#server) throw this.onDemand.refusal();
    return await this.#server.load(signal);
  }

  redact(text: string): string {
    return redactSecrets(text, secretsOf(this.#options.settings));
  }

  figures(): ModelProcessFigures {
    return this.onDemand.figures();
  }

  /** Returns the lines of the command's output after the line with this number. */
  outputAfter(number: number): readonly OutputLine[] {
    return this.#output.after(number);
  }

  /** Measures the memory of the running command, unless the configuration states it. */
  async measure(): Promise<void> {
    const run = this.onDemand.serving;
    const { settings, knowledge } = this.#options;
    if (run && (await knowledge.measure(settings, run.mark))) this.onDemand.resize();
  }

  close(): Promise<void> {
    return this.onDemand.close();
  }

  /** Returns the controls for listing, loading, stopping and pinning the command. */
  control(): ModelProcessControl {
    const { settings } = this.#options;
    return {
      ...{ name: this.name, engine: this, models: settings.models },
      figures: () => this.figures(),
      outputAfter: (number) => this.outputAfter(number),
      load: () => this.onDemand.load(),
      unload: () => this.onDemand.unload(),
      pin: (on) => this.onDemand.pin(on),
    };
  }

  async #meet(run: ServerRun): Promise<void> {
    const { settings, knowledge } = this.#options;
    const { name, timeoutSeconds, idleSeconds, parallel, path } = settings;
    this.#server = new UpstreamEngine({
      ...{ name, url: `${run.url}${path}`, speech: speechOf(settings), maxConcurrency: parallel, httpClient: "own" },
      firstByteTimeoutMs: timeoutSeconds * 1000,
      idleTimeoutMs: idleSeconds * 1000,
    });
    // Not every model server has a model list. If the request fails, the configured model ids are used.
    this.#listed = await this.#server.models(AbortSignal.timeout(listTimeoutMs)).catch(() => []);
    await knowledge.measure(settings, run.mark);
    this.#options.onLoaded(this);
  }
}
