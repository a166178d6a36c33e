// The choice of operators between their own account and all accounts.
import { NativeSelect } from "@mantine/core";
import { useSession } from "../../api/session.tsx";

/**
 * Reports whether a page shows all accounts. `said` is `all` or `own`; otherwise operators see all accounts in
 * production.
 */
export function useAllAccounts(said: string): boolean {
  const { isOperator, environments } = useSession();
  const isProduction = !environments.includes("dev");
  return isOperator && (said === "all" || (said !== "own" && isProduction));
}

/** Lets an operator choose their own account or all accounts. Renders nothing for others. */
export function AccountScope({ isAll, choose }: { isAll: boolean; choose(said: string): void }) {
  const { isOperator, session } = useSession();
  if (!isOperator) return null;
  return (
    <NativeSelect
      aria-label="Accounts"
      size="xs"
      value={isAll ? "all" : "own"}
      onChange={(event) => choose(event.currentTarget.value)}
      data={[
        { value: "all", label: "All accounts" },
        { value: "own", label: session.account.name },
      ]}
    />
  );
}
