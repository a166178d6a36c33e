// Signs what is posted to webhooks, as Standard Webhooks has it.
const secretPrefix = "whsec_";
const secretBytes = 32;

/** `whsec_` and 32 random bytes as base64. */
export function newWebhookSecret(): string {
  return `${secretPrefix}${Buffer.from(crypto.getRandomValues(new Uint8Array(secretBytes))).toString("base64")}`;
}

/** The headers of one attempt. With each of the secrets there is a signature: while one is replaced, receivers may know either. */
export async function signatureHeaders(
  { id, body, nowSeconds }: { id: string; body: string; nowSeconds: number },
  secrets: readonly string[],
): Promise<Record<string, string>> {
  // Loaded with the first delivery.
  const { Webhook } = await import("standardwebhooks");
  const at = new Date(nowSeconds * 1000);
  return {
    "webhook-id": id,
    "webhook-timestamp": String(nowSeconds),
    "webhook-signature": secrets.map((secret) => new Webhook(secret).sign(id, at, body)).join(" "),
  };
}
