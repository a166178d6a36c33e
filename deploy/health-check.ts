// Ends with 0 where the server of this container lives. Not `/readyz`: one whose database is away must not be restarted for it.
const port = process.env["HEADRACE_PORT"] || "7545";
const answer = await fetch(`http://127.0.0.1:${port}/healthz`, { signal: AbortSignal.timeout(2_500) }).catch(
  () => undefined,
);
process.exit(answer?.ok ? 0 : 1);
