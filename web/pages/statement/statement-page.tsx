// The page Statements: the cost of a month by key, person, model or tag, to print or to save as CSV.
import { Stack } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { DownloadIcon, FileIcon } from "@primer/octicons-react";
import { useState } from "react";
import { asFailure, type Query, send } from "../../api/client.ts";
import { useRead } from "../../api/queries.ts";
import { nowSeconds } from "../../api/server-time.ts";
import { useSession } from "../../api/session.tsx";
import type { Statement, StatementOfAccounts } from "../../api/types.ts";
import { useAddress } from "../../parts/page/address.ts";
import { PlainButton } from "../../parts/page/buttons.tsx";
import { download } from "../../parts/page/download.ts";
import { Failure } from "../../parts/page/failure.tsx";
import { Page } from "../../parts/page/page.tsx";
import { Waiting } from "../../parts/page/waiting.tsx";
import { type Asked, allAccounts, askOf, defaults } from "./statement-ask.ts";
import { StatementFilters } from "./statement-filters.tsx";
import { StatementPaper } from "./statement-paper.tsx";

export function StatementPage() {
  const { environment } = useSession();
  const [said, change] = useAddress(defaults);
  const [opened] = useState(() => Math.floor(nowSeconds()));
  const asked = askOf(said, opened);
  // The operators' endpoints take the environment as a parameter; the account's own uses the session's environment.
  const query: Query = said.account === "" ? asked.query : { ...asked.query, environment };
  const { data, error, refetch, isPlaceholderData } = useRead<Statement | StatementOfAccounts>(asked.path, query, {
    keep: true,
  });
  return (
    <Page
      title="Statements"
      about="Monthly cost by key, person, model, tag or app. Members see their own usage, unless an owner allowed more."
      actions={
        <>
          <CsvButton asked={{ ...asked, query }} account={said.account} />
          <PlainButton leftSection={<FileIcon />} onClick={() => window.print()} disabled={!data}>
            Print
          </PlainButton>
        </>
      }
    >
      <Stack gap="md">
        <StatementFilters said={said} month={asked.month} change={change} />
        {error && !data ? (
          <Failure error={error} retry={refetch} />
        ) : !data ? (
          <Waiting heights={[80, 340]} />
        ) : (
          <div className={isPlaceholderData ? "stale" : undefined} aria-busy={isPlaceholderData}>
            <StatementPaper statement={data} columns={columnsOf(data, asked)} />
          </div>
        )}
      </Stack>
    </Page>
  );
}

/** Returns the columns of the statement on screen, which is the previous statement while another loads. */
function columnsOf(statement: Statement | StatementOfAccounts, { columns }: Asked): readonly string[] {
  if (!("account" in statement)) return ["account"];
  return columns.length === statement.group_by.length &&
    columns.every((name) => statement.group_by.some((one) => one === name))
    ? columns
    : statement.group_by;
}

function CsvButton({ asked, account }: { asked: Asked; account: string }) {
  const [isReading, setReading] = useState(false);
  const save = async () => {
    setReading(true);
    try {
      const response = await send("GET", asked.path, { query: asked.query, headers: { accept: "text/csv" } });
      const whose = account === allAccounts ? "-all-accounts" : account === "" ? "" : `-${account}`;
      const by = asked.columns.length === 0 || account === allAccounts ? "" : `-by-${asked.columns.join("-")}`;
      download(`headrace-statement-${asked.month}${whose}${by}.csv`, "text/csv", await response.blob());
    } catch (error) {
      const { message } = asFailure(error, "The statement was not loaded");
      notifications.show({ title: "The export failed", message, color: "red" });
    } finally {
      setReading(false);
    }
  };
  return (
    <PlainButton leftSection={<DownloadIcon />} onClick={() => void save()} disabled={isReading}>
      {isReading ? "Exporting…" : "CSV"}
    </PlainButton>
  );
}
