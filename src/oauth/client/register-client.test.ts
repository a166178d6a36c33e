import { expect, test } from "bun:test";
import { registerClient } from "./register-client.ts";

test("names the same retry time in words and seconds if too many clients register", async () => {
  const clientThrottle = { requireRegistration: async () => {} };
  const full = { outsideClients: { register: async () => false }, clientThrottle };
  const registration = registerClient({ redirect_uris: ["https://app.example/callback"] }, { nowSeconds: 1 }, full);
  await expect(registration).rejects.toMatchObject({
    code: "service_unavailable",
    message: expect.stringContaining("Retry in 60 s."),
    retryAfterSeconds: 60,
  });
});
