// A device code works only for the client that it was issued to (RFC 8628, 3.4).
import { invalidGrant } from "../oauth-error.ts";
import type { PolledDevice } from "./poll-device.ts";
import type { ClientRequest } from "./stage.ts";

export function deviceIsOfClient({ code }: PolledDevice, { client }: ClientRequest): undefined {
  if (code.appId !== client.id) throw invalidGrant("device_code_of_other_client");
}
