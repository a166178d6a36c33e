// Without the limits of addresses, for tests of parts that are about something else.
import type { AddressThrottle } from "../../src/policy/address-throttle.ts";
import type { UnknownCredentials } from "../../src/policy/credentials/unknown-credentials.ts";

export const anyAddress: Pick<AddressThrottle, "take"> = { take: () => undefined };
export const anyCredential: Pick<UnknownCredentials, "find" | "found"> = {
  find: async (_digest, _address, look) => look(),
  found: () => {},
};
