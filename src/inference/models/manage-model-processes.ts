// Lets operators list, load, unload and pin the model processes that the gateway starts on demand.
import { fieldError, GatewayError } from "../../base/errors.ts";
import { shown } from "../../base/text/shown.ts";
import type { AuditLog } from "../../domain/audit.ts";
import type { ModelProcessControl, OutputLine, SharedMemory } from "../../domain/models/model-process.ts";
import type { Principal } from "../../domain/principal.ts";
import { requireOperator } from "../../policy/manage/operator.ts";
import { aboutInstallation, auditEvent, type Origin } from "../../policy/records/audit.ts";
import type { ChangeModelProcessRequest, ModelProcessWire } from "../../wire/model-processes.ts";
import type { Capacity } from "../routing/capacity.ts";

export interface ModelProcessesOptions {
  processes: readonly ModelProcessControl[];
  memory(): SharedMemory;
  capacity: Pick<Capacity, "waitingByAccount">;
  audit: Pick<AuditLog, "append">;
}

export class ModelProcesses {
  readonly #options: ModelProcessesOptions;

  constructor(options: ModelProcessesOptions) {
    this.#options = options;
  }

  list(): ModelProcessWire[] {
    return this.#options.processes.map((process) => this.#shown(process));
  }

  get memory(): SharedMemory["pools"] {
    return this.#options.memory().pools;
  }

  /** Returns the process with this name, or the only process that serves the model with this id. Throws `not_found`. */
  find(name: string): ModelProcessWire {
    return this.#shown(this.#find(name));
  }

  outputAfter(name: string, number: number): readonly OutputLine[] {
    return this.#find(name).outputAfter(number);
  }

  /** Resolves when the change has begun and its audit event is recorded. */
  async change(
    principal: Principal,
    name: string,
    { loaded, pinned }: ChangeModelProcessRequest,
    origin: Origin,
  ): Promise<ModelProcessWire> {
    requireOperator(principal);
    const process = this.#find(name);
    if (loaded === false && pinned === true) {
      throw fieldError("pinned", "must not be true beside loaded: false. A pin loads it; leave one of them out.");
    }
    const detail = { ...(loaded === undefined ? {} : { loaded }), ...(pinned === undefined ? {} : { pinned }) };
    await this.#options.audit.append([
      auditEvent("model_process.changed", principal, origin, aboutInstallation(process.name, detail)),
    ]);
    if (pinned !== undefined) process.pin(pinned);
    if (loaded === true) process.load();
    if (loaded === false) process.unload();
    // The result shows the state of the next tick. By then, requests that can never fit were refused, and abandoned
    // requests have left the queue.
    await new Promise((resolve) => setImmediate(resolve));
    return this.#shown(process);
  }

  #find(name: string): ModelProcessControl {
    const { processes } = this.#options;
    const serving = processes.filter(({ models }) => models.includes(name));
    const found = processes.find((process) => process.name === name) ?? (serving.length === 1 ? serving[0] : undefined);
    if (found) return found;
    throw new GatewayError(
      "not_found",
      `There is no model process ${shown(name)}. \`headrace models ps\`, or GET /v1/admin/model-processes, lists those that are; models of the built-in engine are loaded and unloaded by themselves.`,
    );
  }

  #shown(process: ModelProcessControl): ModelProcessWire {
    const { inFlight, loadSeconds, memory, ...figures } = process.figures();
    const { behind, next } = this.#options.memory();
    const waiting = [...this.#options.capacity.waitingByAccount(process.engine)];
    const bytes = Object.entries(memory).filter(([pool]) => !pool.includes(":"));
    return {
      object: "model_process",
      ...{ name: process.name, models: [...process.models], ...figures, running: inFlight },
      memory: Object.fromEntries(bytes.map(([pool, amount]) => [pool, Math.round(amount)])),
      waiting_by: waiting.map(([account_id, requests]) => ({ account_id, requests })),
      behind: [...(behind.get(process.name) ?? [])],
      is_next: next === process.name,
      load_seconds: Math.round(loadSeconds * 1000) / 1000,
    };
  }
}
