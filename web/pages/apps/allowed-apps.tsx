// The apps and command line logins that the user authorized, and their revocation.
import { Stack } from "@mantine/core";
import { useState } from "react";
import { call } from "../../api/client.ts";
import { useList } from "../../api/queries.ts";
import type { Authorization } from "../../api/types.ts";
import { Confirm } from "../../parts/editing/confirm.tsx";
import { FormDialog } from "../../parts/editing/form-dialog.tsx";
import { useQuestion } from "../../parts/editing/question.ts";
import { useLast } from "../../parts/editing/use-last.ts";
import { ShowMore } from "../../parts/page/buttons.tsx";
import { Empty } from "../../parts/page/empty.tsx";
import { Failure } from "../../parts/page/failure.tsx";
import { Waiting } from "../../parts/page/waiting.tsx";
import { QuotaForm } from "../../parts/quotas/quota-form.tsx";
import { ToolListForm } from "../../parts/tools/tool-list-form.tsx";
import { type Allowed, commandLineId, joined } from "./allowed.ts";
import { AllowedApp } from "./allowed-app.tsx";

const path = "/v1/authorizations";

export function AllowedApps() {
  const listing = useList<Authorization>(path, { limit: 100 });
  const { items, error, isPending, fetchNextPage, refetch } = listing;
  const revocation = useQuestion(({ id }: Allowed) => call("DELETE", `${path}/${encodeURIComponent(id)}`), {
    stale: [path],
    said: (_answer, { app }) => `${app.name} no longer has access.`,
  });
  const [limited, setLimited] = useState<Allowed>();
  const shown = useLast(limited);
  const [choosing, setChoosing] = useState<Allowed>();
  if (isPending) return <Waiting heights={[110, 110]} />;
  if (error && items.length === 0) return <Failure error={error} retry={refetch} />;
  if (items.length === 0) {
    return (
      <Empty title="No apps allowed yet">
        An app that wants to use models on your behalf sends you here first and shows what it asks for. The command line
        does the same with <code>npx headrace login</code>. Apps that you allow are listed on this page until you revoke
        their access.
      </Empty>
    );
  }
  const asked = revocation.about;
  const isTool = asked?.app.id === commandLineId;
  return (
    <Stack>
      <Stack component="ul" m={0} p={0} style={{ listStyle: "none" }} aria-label="Apps I allowed">
        {joined(items).map((allowed) => (
          <AllowedApp
            key={allowed.id}
            allowed={allowed}
            limit={() => setLimited(allowed)}
            chooseTools={() => setChoosing(allowed)}
            takeBack={() => revocation.ask(allowed)}
          />
        ))}
      </Stack>
      {error && <Failure error={error} retry={fetchNextPage} />}
      <ShowMore listing={listing} />
      <FormDialog opened={limited !== undefined} close={() => setLimited(undefined)} title={`Limit ${nameOf(shown)}`}>
        {shown && (
          <QuotaForm
            key={shown.id}
            path={`${path}/${encodeURIComponent(shown.id)}`}
            quotas={shown.quotas}
            about={`These quotas count everything that the app does for ${shown.account.name} on your behalf. Each environment is counted separately. Your own quotas and those of the account also apply.`}
            stale={[path]}
            said={`The limits of ${nameOf(shown)} were saved and take effect immediately.`}
            close={() => setLimited(undefined)}
          />
        )}
      </FormDialog>
      <ToolsDialog of={choosing} close={() => setChoosing(undefined)} />
      <Confirm
        {...revocation.dialog}
        title={isTool ? "Sign out the command line?" : `Revoke access for ${asked?.app.name ?? ""}?`}
        action={isTool ? "Sign out" : "Revoke access"}
      >
        {isTool
          ? `All logins of the command line for ${asked?.account.name} end immediately, on every computer. To continue, log in there again.`
          : `The app loses its access to ${asked?.account.name} immediately, and its next request is refused. The app may ask you for access again.`}
      </Confirm>
    </Stack>
  );
}

function ToolsDialog({ of, close }: { of: Allowed | undefined; close(): void }) {
  const shown = useLast(of);
  return (
    <FormDialog opened={of !== undefined} close={close} title={`Tools for ${nameOf(shown)}`}>
      {shown && (
        <ToolListForm
          key={shown.id}
          path={`${path}/${encodeURIComponent(shown.id)}`}
          tools={shown.tools}
          about={`Choose from the tools that you may use in ${shown.account.name}`}
          stale={[path]}
          said={`The tools of ${nameOf(shown)} were saved and take effect immediately.`}
          close={close}
        />
      )}
    </FormDialog>
  );
}

function nameOf(allowed: Allowed | undefined): string {
  return allowed?.app.id === commandLineId ? "the command line" : (allowed?.app.name ?? "");
}
