// The button that suspends or resumes a key or an app, after a confirmation.
import { call } from "../../api/client.ts";
import { PlainButton } from "../page/buttons.tsx";
import { Confirm } from "./confirm.tsx";
import { useQuestion } from "./question.ts";

interface SuspendingProps {
  /** The API path of the object. */
  path: string;
  what: "key" | "app";
  name: string;
  isSuspended: boolean;
  /** The API paths that show the state. */
  stale: readonly string[];
}

const consequences = {
  key: "The key and all keys that it created are refused, and their running requests stop, within a second. Nothing is deleted, and you can resume the key.",
  app: "The app's access tokens are refused for all people, and their running requests stop, within a second. Nobody can allow the app meanwhile. Nothing is deleted, and you can resume the app.",
};

export function Suspending({ path, what, name, isSuspended, stale }: SuspendingProps) {
  const [verb, action] = isSuspended ? ["Resume", "resume"] : ["Suspend", "suspend"];
  const question = useQuestion(() => call("POST", `${path}/${action}`, { body: {} }), {
    stale,
    said: () => (isSuspended ? `The ${what} “${name}” works again.` : `The ${what} “${name}” is suspended.`),
  });
  return (
    <>
      <PlainButton onClick={() => question.ask()}>{verb}</PlainButton>
      <Confirm {...question.dialog} title={`${verb} “${name}”?`} action={`${verb} ${what}`} final={!isSuspended}>
        {isSuspended
          ? `The ${what} works again with the next request, unless it has ended meanwhile.`
          : consequences[what]}
      </Confirm>
    </>
  );
}
