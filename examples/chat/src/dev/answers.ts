/** What the mock's scripted model says. */

export const LONG = `Here is a small HTTP client in Rust, and what it costs.

## The code

\`\`\`rust
use std::time::Duration;

/// Fetches a page, giving up after \`limit\`.
pub async fn fetch(url: &str, limit: Duration) -> Result<String, Error> {
    let client = reqwest::Client::builder().timeout(limit).build()?;
    let response = client.get(url).send().await?; // one request
    Ok(response.text().await?)
}
\`\`\`

It has three properties worth naming:

1. **It ends.** The timeout covers connecting, sending and reading.
2. It returns an *error*, never a panic.
3. It borrows the address: \`&str\`, not \`String\`.

| Case | Time | Memory |
|---|---:|---:|
| small page | 12 ms | 40 KB |
| large page | 340 ms | 6.1 MB |
| no answer | \`limit\` | 4 KB |

> Measure before you change anything.

- [x] works with HTTP/2
- [ ] follows proxies, see [the documentation](https://docs.rs/reqwest)

Raw markup stays text: <img src=x onerror="alert(1)">, and a remote picture is a link: ![a chart](https://example.org/chart.png)

\`\`\`ts
const page = await fetch('https://example.org', { signal: AbortSignal.timeout(5_000) })
console.log(\`\${page.status}: \${(await page.text()).length} characters\`)
\`\`\`

Tell me if you need retries as well.`

export const CHINESE = `好的，下面是一个简单的例子。

## 代码

\`\`\`python
def greet(name: str) -> str:
    """返回一句问候。"""
    return f"你好，{name}！"
\`\`\`

要点如下：

1. **类型注解**让编辑器能检查参数。
2. 文档字符串说明函数的作用。

| 输入 | 输出 |
|---|---|
| \`"世界"\` | 你好，世界！ |

需要我再加上单元测试吗？`

export const REASONING = `The user wants a client that cannot hang. A timeout on the whole request is the simplest
promise that holds. I should show the code first, then what it costs, and name the open ends.`
