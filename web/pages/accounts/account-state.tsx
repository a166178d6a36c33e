// The status of an account as a word with an icon.
import type { Account } from "../../api/types.ts";
import { State } from "../../parts/words/state.tsx";

export function AccountState({ account: { status } }: { account: Pick<Account, "status"> }) {
  return status === "active" ? <State kind="good">Active</State> : <State kind="warning">Suspended</State>;
}
