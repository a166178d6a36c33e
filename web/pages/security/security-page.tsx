// The page Profile and sign-in: one's own name, password, passkeys, and the browsers that are signed in.
import { useRead } from "../../api/queries.ts";
import type { PasskeyList } from "../../api/types.ts";
import { Page } from "../../parts/page/page.tsx";
import { NoticeMail } from "./notice-mail.tsx";
import { passkeysPath } from "./passkey-support.ts";
import { Passkeys } from "./passkeys.tsx";
import { Password } from "./password.tsx";
import { Profile } from "./profile.tsx";
import { Sessions } from "./sessions.tsx";

export function SecurityPage() {
  // Until it is known how many passkeys there are, nothing stands below them: it would move.
  const { isPending } = useRead<PasskeyList>(passkeysPath);
  return (
    <Page title="Profile and sign-in" about="Your name, your sign-in methods, and your signed-in browsers.">
      <Profile />
      <NoticeMail />
      <Password />
      <Passkeys />
      {!isPending && <Sessions />}
    </Page>
  );
}
