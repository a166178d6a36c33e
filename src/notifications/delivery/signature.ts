// Signs webhook posts according to Standard Webhooks.
const secretPrefix = "whsec_";
const secretBytes = 32;

/** Returns `whsec_` and 32 random bytes as base64. */
export function newWebhookSecret(): string {
  return `${secretPrefix}${Buffer.from(crypto.getRandomValues(new Uint8Array(secretBytes))).toString("base64")}`;
}

/**
 * Returns the headers of one attempt, with a signature for each secret. During a rotation, receivers may know either
 * secret.
 */
export async function signatureHeaders(
  { id, body, nowSeconds }: { id: string; body: string; nowSeconds: number },
  secrets: readonly string[],
): Promise<Record<string, string>> {
  // The library loads with the first delivery.
  const { Webhook } = await import("standardwebhooks");
  const at = new Date(nowSeconds * 1000);
  return {
    "webhook-id": id,
    "webhook-timestamp": String(nowSeconds),
    "webhook-signature": secrets.map((secret) => new Webhook(secret).sign(id, at, body)).join(" "),
  };
}
