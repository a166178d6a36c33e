// The page Accounts: the list, or the account that the address names.
import { useRoute } from "wouter";
import { operatorsOnly } from "../../parts/page/operators-only.tsx";
import { AccountList } from "./account-list.tsx";
import { AccountView } from "./account-view.tsx";

export const AccountsPage = operatorsOnly("Accounts", Accounts);

function Accounts() {
  const [, params] = useRoute("/admin/accounts/:id");
  return params ? <AccountView key={params.id} id={params.id} /> : <AccountList />;
}
