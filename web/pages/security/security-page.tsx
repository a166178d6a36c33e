// The page Profile and sign-in: name, password, passkeys and signed-in browsers.
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
  // The parts below the passkeys wait until the passkeys are loaded, because they would move.
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
