// The page of an app that knows of the agent what the README told it: `chat.ts` is its quick start.
import { ask } from "./chat";

const form = element("form", HTMLFormElement);
const question = element("input", HTMLInputElement);
const answers = element("section", HTMLElement);

form.addEventListener("submit", (event) => {
  event.preventDefault();
  void showAnswer(question.value);
  question.value = "";
});

async function showAnswer(asked: string): Promise<void> {
  const answer = document.createElement("pre");
  answer.ariaBusy = "true";
  answers.append(answer);
  try {
    await ask(asked, (text) => answer.append(text));
  } catch (error) {
    answer.append(String(error));
  } finally {
    answer.ariaBusy = "false";
  }
}

function element<T extends Element>(selector: string, kind: new () => T): T {
  const found = document.querySelector(selector);
  if (found instanceof kind) return found;
  throw new Error(`The page has no ${selector}.`);
}
