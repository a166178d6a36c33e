// The apps and command line logins that somebody allowed to act in their name, and taking that back.
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
    said: (_answer, { app }) => `${app.name} has no access any more.`,
  });
  const [limited, setLimited] = useState<Allowed>();
  const shown = useLast(limited);
  const [choosing, setChoosing] = useState<Allowed>();
  if (isPending) return <Waiting heights={[110, 110]} />;
  if (error && items.length === 0) return <Failure error={error} retry={refetch} />;
  if (items.length === 0) {
    return (
      <Empty title="You allowed no app yet">
        An app that wants to use models in your name sends you here first, and you see what it asks for. So does the
        command line with <code>npx headrace login</code>. What you allow is listed on this page until you take it back.
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
      <FormDialog
        opened={limited !== undefined}
        close={() => setLimited(undefined)}
        title={`How much ${nameOf(shown)} may use for you`}
      >
        {shown && (
          <QuotaForm
            key={shown.id}
            path={`${path}/${encodeURIComponent(shown.id)}`}
            quotas={shown.quotas}
            about={`Of all that it does for ${shown.account.name} in your name, in each environment by itself; within your own quotas and those of the account.`}
            stale={[path]}
            said={`What ${nameOf(shown)} may use is saved. It holds at once.`}
            close={() => setLimited(undefined)}
          />
        )}
      </FormDialog>
      <ToolsDialog of={choosing} close={() => setChoosing(undefined)} />
      <Confirm
        {...revocation.dialog}
        title={isTool ? "Sign out the command line?" : `Take back what ${asked?.app.name ?? ""} may do?`}
        action={isTool ? "Sign it out" : "Take it back"}
        stay={isTool ? "Keep it" : "Keep it allowed"}
      >
        {isTool
          ? `All logins of the command line for ${asked?.account.name} end at once, on every computer. To go on, log in there again.`
          : `Its access to ${asked?.account.name} ends at once: its next request is refused. It may ask you again.`}
      </Confirm>
    </Stack>
  );
}

function ToolsDialog({ of, close }: { of: Allowed | undefined; close(): void }) {
  const shown = useLast(of);
  return (
    <FormDialog opened={of !== undefined} close={close} title={`Which tools ${nameOf(shown)} may use for you`}>
      {shown && (
        <ToolListForm
          key={shown.id}
          path={`${path}/${encodeURIComponent(shown.id)}`}
          tools={shown.tools}
          about={`Of those that you may use yourself in ${shown.account.name}`}
          stale={[path]}
          said={`The tools of ${nameOf(shown)} are saved. They hold at once.`}
          close={close}
        />
      )}
    </FormDialog>
  );
}

function nameOf(allowed: Allowed | undefined): string {
  return allowed?.app.id === commandLineId ? "the command line" : (allowed?.app.name ?? "");
}
