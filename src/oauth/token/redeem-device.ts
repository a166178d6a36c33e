// Takes the approved device code and issues what it stands for, in one step.
import { invalidGrant } from "../oauth-error.ts";
import { created } from "./grant-events.ts";
import { newGrant } from "./new-grant.ts";
import type { PolledDevice } from "./poll-device.ts";
import type { ClientRequest, TokenAnswer, TokenDeps } from "./stage.ts";

export async function redeemDevice(
  { code }: PolledDevice,
  request: ClientRequest,
  deps: TokenDeps,
): Promise<TokenAnswer> {
  const { personId, accountId, membershipId } = code;
  if (personId === null || accountId === null || membershipId === null) throw invalidGrant("device_code_undecided");
  const { answer, ...issued } = await newGrant({ ...code, personId, accountId, membershipId }, request, deps);
  const event = created(request, issued.grant, "device_code");
  if (await deps.oauth.redeemDeviceCode(code.digest, issued, event)) return answer;
  throw invalidGrant("device_code_used");
}
