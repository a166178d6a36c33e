// Finds model servers on this machine by requesting the default ports of well-known ones.
import { GatewayError } from "../base/errors.ts";
import { httpTarget } from "./http-engine.ts";
import { getModels } from "./model-list.ts";

export interface LocalServer {
  /** The upstream name that is proposed for the server. */
  name: string;
  /** The product name, such as Ollama. */
  title: string;
  port: number;
}

export const knownLocalServers: readonly LocalServer[] = [
  { name: "ollama", title: "Ollama", port: 11434 },
  { name: "lmstudio", title: "LM Studio", port: 1234 },
  { name: "vllm", title: "vLLM", port: 8000 },
  { name: "llama-server", title: "llama-server", port: 8080 },
];

export interface FoundServer extends LocalServer {
  url: string;
  /** The ids of the server's models. Undefined if the server requires a credential first. */
  models: readonly string[] | undefined;
}

const probeTimeoutMs = 700;

/** Requests the model lists of all servers in parallel. Ports without an OpenAI-compatible answer are left out. */
export async function findLocalServers(servers: readonly LocalServer[], ownPort: number): Promise<FoundServer[]> {
  const probes = servers
    .filter((server) => server.port !== ownPort)
    .map(async (server): Promise<FoundServer | undefined> => {
      const url = `http://127.0.0.1:${server.port}/v1`;
      try {
        const timing = { firstByteTimeoutMs: probeTimeoutMs, idleTimeoutMs: probeTimeoutMs };
        const target = httpTarget({ name: server.name, url, ...timing });
        const models = await getModels(target, AbortSignal.timeout(probeTimeoutMs));
        return { ...server, url, models: models.map((model) => model.id) };
      } catch (error) {
        const locked = error instanceof GatewayError && /answered 40[13]$/.test(error.message);
        return locked ? { ...server, url, models: undefined } : undefined;
      }
    });
  return (await Promise.all(probes)).filter((found) => found !== undefined);
}
