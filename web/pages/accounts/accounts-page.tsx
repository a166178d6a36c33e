// The page Accounts: all of them, or the one that the address names.
import { useRoute } from "wouter";
import { OperatorsOnly } from "../../parts/page/operators-only.tsx";
import { AccountList } from "./account-list.tsx";
import { AccountView } from "./account-view.tsx";

export function AccountsPage() {
  const [, params] = useRoute("/admin/accounts/:id");
  return (
    <OperatorsOnly title="Accounts">
      {params ? <AccountView key={params.id} id={params.id} /> : <AccountList />}
    </OperatorsOnly>
  );
}
