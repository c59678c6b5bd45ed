// A person's way through notebook 06 in JupyterLab: run all, watch the bar and the chart move,
// interrupt, read a variable, save. Usage: node lab.mjs ADDRESS NOTEBOOK SCREENSHOT_FOLDER
import { mkdirSync } from "node:fs";
import { chromium } from "playwright-core";

const [address, notebook, folder] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const page = await browser.newPage({ viewport: { width: 1280, height: 1000 } });
page.setDefaultTimeout(120_000);

let passed = 0;
const check = (name, fact) => {
  if (!fact) throw new Error(`not true: ${name}`);
  console.log(`ok  ${name}`);
  passed += 1;
};
const screenshot = (name) => page.screenshot({ path: `${folder}/${name}.png` });
// Notebooks draw only the cells in view, so a cell is scrolled to before it is read.
const cell = async (text) => {
  const found = page.locator(".jp-Notebook .jp-CodeCell", { hasText: text }).first();
  await found.scrollIntoViewIfNeeded();
  return found;
};
const changes = async (read, seconds) => {
  const seen = new Set();
  for (let i = 0; i < seconds * 10; i += 1) {
    const now = await read();
    if (now) seen.add(now);
    if (seen.size > 2) return true;
    await page.waitForTimeout(100);
  }
  return false;
};
const command = async (menu, entry) => {
  await page.locator(".lm-MenuBar-itemLabel", { hasText: new RegExp(`^${menu}$`) }).click();
  await page.locator(".lm-Menu-itemLabel", { hasText: entry }).first().click();
};

try {
  await page.goto(`${address}/lab/tree/${notebook}?reset`);
  await page.waitForSelector(".jp-Notebook .jp-CodeCell");
  await page.waitForSelector(".jp-Notebook-ExecutionIndicator[data-status=idle]");
  await command("Edit", "Clear Outputs of All Cells");
  await command("Run", /^Run All Cells$/);

  const loop = await cell("accelerator.progress(&dataloader)");
  const bar = () => loop.locator(".jp-OutputArea-output pre").last().textContent({ timeout: 1000 })
    .catch(() => null);
  await loop.locator(".jp-OutputArea-output").first().waitFor();
  check("the progress bar moves while the cell runs", await changes(bar, 60));
  const image = () => loop.locator("img").first().getAttribute("src", { timeout: 1000 })
    .catch(() => null);
  check("the loss chart is drawn anew while the cell runs", await changes(image, 60));
  await loop.locator("img").first().scrollIntoViewIfNeeded();
  await screenshot("training");

  await page.locator(".jp-NotebookPanel-toolbar [data-jp-item-name=interrupt]").click();
  await loop.locator(".jp-OutputArea-output", { hasText: "interrupted at step" }).waitFor();
  check("an interrupt ends the loop with its step", true);
  await page.waitForSelector(".jp-Notebook-ExecutionIndicator[data-status=idle]");
  await screenshot("interrupted");

  // A new cell at the end reads what the interrupted loop has left.
  await page.locator(".jp-Notebook .jp-Cell").last().scrollIntoViewIfNeeded();
  await page.locator(".jp-Notebook .jp-Cell").last().click();
  await command("Edit", /^Select All Cells$|^Deselect All Cells$/).catch(() => {});
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+ArrowDown");
  await page.keyboard.press("b");
  await page.keyboard.press("Enter");
  await page.keyboard.type("model.num_parameters()");
  await page.keyboard.press("Control+Enter");
  const value = page.locator(".jp-CodeCell", { hasText: "model.num_parameters()" }).last()
    .locator(".jp-OutputArea-executeResult");
  await value.waitFor();
  check("the model is still there after the interrupt", /\d{4,}/.test(await value.textContent()));

  await page.keyboard.press("Control+s");
  await page.waitForTimeout(1500);
  check("no dialog is open after saving", await page.locator(".jp-Dialog").count() === 0);
  await screenshot("saved");
  console.log(`${passed} passed, 0 failed`);
} catch (error) {
  await screenshot("failed");
  console.error(String(error));
  console.log(`${passed} passed, 1 failed`);
  process.exitCode = 1;
} finally {
  await browser.close();
}
