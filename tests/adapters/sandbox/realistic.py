"""Commands as models write them over a folder of documents: searches, pipelines, loops, several lines with comments.

Each must give the output and the exit code that bash gives over the same folder. Texts of several lines are apart.
"""

from __future__ import annotations

from pathlib import Path

_FILES = {
    "README.md": (
        "# Handbook\n\nStart with [install](docs/install.md).\n\n- Support: help@example.org\n- TODO: add a map\n"
    ),
    "CHANGELOG.md": (
        "# Changelog\n\n## 2.1.0\n\n- Add export\n- Fix login\n\n## 2.0.0\n\n- Drop Python 3.8\n\n"
        "## 1.9.3\n\n- Fix typo\n"
    ),
    "docs/install.md": (
        "---\ntitle: Install\ntags: [setup, linux]\n---\n\n# Install\n\n## Requirements\n\n"
        "Python 3.11, 2 GB of RAM.\n\n## Steps\n\n1. Run `pip install app`\n2. Set `APP_TOKEN`\n\n```sh\n"
        "export APP_TOKEN=abc\napp run --port 8080\n```\n\n## Next\n\nSee [faq](faq.md).\n"
    ),
    "docs/faq.md": (
        "---\ntitle: FAQ\ntags: [help]\n---\n\n# FAQ\n\n## How do I reset my password?\n\n"
        "Open Settings > Account.\n\n## What does it cost?\n\nThe Pro plan costs $12 a month, Team $30.\n\n"
        "## Where is the log?\n\nIn /var/log/app.log | journald.\n"
    ),
    "docs/guides/backup.md": (
        "# Backup\n\nTODO: write about restore\n\nRun app backup every night at 03:00.\nKeep 7 copies.\n"
    ),
    "docs/guides/opening hours.md": (
        "# Opening hours\n\nMonday to Friday: 9:00 - 17:00\nSaturday: 10:00 - 14:00\nSunday: closed\n"
    ),
    "docs/guides/übersicht.md": "# Übersicht\n\nÄpfel und Öl, Größe 10\n",
    "docs/api/users.mdx": (
        "export const meta = {title: 'Users'}\n\n# GET /users\n\n| field | type |\n| --- | --- |\n"
        "| id | int |\n| name | string |\n"
    ),
    "docs/api/events.mdx": "# POST /events\n\nLimit: 100 requests per minute.\nerror 429 when exceeded\n",
    "data/users.csv": ("id,name,team,age\n1,Ann,red,34\n2,Bob,blue,28\n3,Cid,red,41\n4,Dee,green,28\n5,Eve,blue,55\n"),
    "data/scores.tsv": "Ann\t10\t7\nBob\t8\t9\nCid\t10\t3\n",
    "data/events.jsonl": (
        '{"user":"ann","type":"login","ms":120}\n{"user":"bob","type":"error","ms":3000}\n'
        '{"user":"ann","type":"error","ms":450}\n{"user":"cid","type":"login","ms":80}\n'
    ),
    "data/config.json": (
        '{"name":"app","version":"2.1.0","limits":{"users":100,"rate":2.5},"tags":["a","b"],'
        '"services":[{"name":"web","port":80},{"name":"db","port":5432}]}\n'
    ),
    "config/app.yaml": "server:\n  port: 8080\n  host: localhost\nlogging:\n  level: debug\n# TODO: rotate\n",
    "logs/app.log": (
        "2026-01-01 09:00:01 INFO start\n2026-01-01 09:00:05 ERROR db timeout\n"
        "2026-01-01 09:01:00 WARN slow query 1200ms\n2026-01-02 10:00:00 INFO start\n"
        "2026-01-02 10:02:00 ERROR disk full\n2026-01-02 10:03:00 ERROR db timeout\n"
    ),
    "src/main.py": (
        "import os\nfrom app import run\n\n\ndef main():\n    # TODO: arguments\n    run(os.environ)\n\n\n"
        "class App:\n    def start(self):\n        pass\n"
    ),
    "src/util.py": "import re\n\n\ndef slug(text):\n    return re.sub(r'\\W+', '-', text)\n",
    ".hidden/notes.md": "TODO hidden\n",
    "empty.txt": "",
}


def make_realistic_folder(root: Path) -> Path:
    root.mkdir(mode=0o755)
    for name, text in _FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True, mode=0o755)
        (root / name).write_text(text, encoding="utf-8")
    return root


_LINES = r"""
ls -l docs | awk '{print $NF}' | tail -n +2 | sort
ls docs/*.md | wc -l
ls -1 docs/guides | sort
ls -R docs | grep '\.md$' | sort
find . -type f | wc -l
find . -name "*.md" -type f | sort | head -20
find docs -name '*.md' -o -name '*.mdx' | sort
find . -type f -name "*.md" -not -path "*/.*" | sort
find . -type f \( -name "*.json" -o -name "*.yaml" \) | sort
find . -regex '.*\.\(json\|csv\)$' | sort
find . -regextype posix-extended -regex '.*\.(md|mdx)$' | sort
find . -iregex '.*README.*'
find docs -regextype egrep -regex 'docs/[a-z]+\.md' | sort
find . -type d -not -path '*/.*' | sort
find . -maxdepth 2 -type f | sort | head
find . -empty -type f
find docs -type f -exec grep -l "TODO" {} \;
find docs -type f -exec grep -l "TODO" {} + | sort
find . -name '*.md' -exec wc -l {} + | sort -n | tail -3
find . -name "*.py" -exec grep -Hn "def " {} \; | sort
find docs -name '*.md' -print0 | xargs -0 grep -c '' | sort
find docs -name '*.md' | xargs -d '\n' grep -n "TODO" | sort
find docs -name '*.md' | xargs -d '\n' -I{} basename {} .md | sort
find docs -name '*.mdx' | xargs -n1 dirname | sort -u
find docs -type f -printf '%f\n' | sort | head -5
find . -type f -name '*.md' -exec sed -n '1p' {} \; | sort
find . -type f -exec awk 'FNR==1{print FILENAME}' {} + | sort | head -3
grep -rn "TODO" . | sort
grep -rn "TODO" --include="*.md" . | sort
grep -rni "password" docs/ 2>/dev/null | head -20
grep -rn "password\|log" docs --include='*.md' | cut -d: -f1 | sort | uniq -c
grep -rlE "install|backup" . | sort
grep -rhoE '[A-Za-z0-9._]+@[A-Za-z0-9.]+' . | sort -u
grep -n '^## ' docs/*.md
grep -n '^#' docs/install.md | cut -d: -f2-
grep -c "ERROR" logs/app.log
grep "ERROR" logs/app.log | awk '{print $1}' | sort | uniq -c
grep -E "ERROR|WARN" logs/app.log | wc -l
grep -A3 "## Steps" docs/install.md
grep -B1 -A2 -n "cost" docs/faq.md
grep -oP '\$\d+' docs/faq.md
grep -oP '(?<=title: ).*' docs/*.md
grep -v '^#' config/app.yaml
grep -rn "8080" . | sort | head -5
grep -i "monday" "docs/guides/opening hours.md"
grep -rn 'Äpfel' docs
grep -q "TODO" README.md && echo "has todo" || echo "no todo"
grep -rL "TODO" docs | sort
grep -rw "Run" docs | sort
grep -n "Settings > Account" docs/faq.md
grep -rn "error" --include=*.{md,mdx} docs | head
grep -rn "TODO" . | grep -v hidden | awk -F: '{print $1}' | sort -u
grep -m1 -n "Fix" CHANGELOG.md
grep -rn "import" src | sed 's/:.*import/: import/' | sort
egrep -rn "pip|app run" docs | sort
egrep -c 'INFO|WARN' logs/app.log
fgrep '$12' docs/faq.md
fgrep -rn "| journald" docs
cat docs/install.md | head -10
cat docs/faq.md | grep -A2 "log"
cat data/users.csv | cut -d, -f2
cat data/users.csv | tail -n +2 | cut -d',' -f3 | sort | uniq -c | sort -rn
cat -n src/util.py
cat logs/app.log | awk '$3=="ERROR"' | wc -l
cat README.md docs/install.md | wc -w
cat config/app.yaml | tr -d ' '
cat data/users.csv | tr ',' '\t' | head -2
cat CHANGELOG.md | tr 'A-Z' 'a-z' | grep fix
cat README.md | tr -s ' \n' '\n' | sort | uniq -c | sort -rn | head -3
cat docs/install.md | tr -cd '#' | wc -c
cat 'docs/guides/opening hours.md' | nl
cat nosuch.md || ls docs
cat nosuch.md 2>/dev/null || echo "not found"
head -5 docs/install.md
head -n 1 docs/*.md
head -c 20 README.md
tail -3 logs/app.log
tail -n +2 data/users.csv | head -2
head -20 docs/install.md | tail -10
wc -l docs/*.md | tail -1
wc -w < README.md
wc -l < data/users.csv
sort < data/scores.tsv | head -1
sort -t, -k4 -n data/users.csv | tail -2
sort -t, -k4,4nr -k2,2 data/users.csv | head -3
tail -n +2 data/users.csv | sort -t, -k3,3 -k2,2r
sort -u data/scores.tsv | wc -l
cut -d, -f2,4 data/users.csv
cut -d ',' -f 1-2 data/users.csv | tail -n +2
cut -c1-10 logs/app.log | sort -u
cut -f1 data/scores.tsv
cut -d' ' -f3 logs/app.log | sort | uniq -c
cut --complement -d, -f1 data/users.csv
cut -d: -f1 --output-delimiter=- config/app.yaml
tr '[:lower:]' '[:upper:]' < README.md
tr -d '\r' < README.md | wc -l
tr -s '\n' < docs/faq.md | head -5
nl -ba docs/faq.md | sed -n '5,9p'
nl -b a -w 3 -s ': ' src/util.py
sed -n '1,5p' docs/install.md
sed -n '/## Steps/,/## Next/p' docs/install.md
sed -n '/^## 2.0.0/,/^## /p' CHANGELOG.md
sed -n '/^## 2.1.0/,/^## 2.0.0/{/^## /!p}' CHANGELOG.md
sed -n '/TODO/p' README.md
sed -n '/title:/s/title: //p' docs/*.md
sed -n '$p' logs/app.log
sed -n '2{p;q}' data/users.csv
sed -n '/ERROR/{=;p}' logs/app.log
sed -n '/Requirements/,+2p' docs/install.md
sed -n '10,$p' docs/faq.md
sed -n '1~2p' data/users.csv
sed -n '$=' docs/faq.md
sed '1d' data/users.csv
sed '/^$/d' docs/faq.md | head -5
sed 's/,/ | /g' data/users.csv
sed 's/^- //' CHANGELOG.md | head -5
sed -e 's/#//g' -e '/^$/d' CHANGELOG.md
sed -E 's/([0-9]+)-([0-9]+)-([0-9]+)/\3.\2.\1/' logs/app.log | head -2
sed -n 's/.*(\(.*\)).*/\1/p' README.md
sed '3q' docs/faq.md
sed 10q docs/install.md
sed '/^---$/,/^---$/d' docs/faq.md | head -3
sed 's|docs/|./docs/|' README.md
sed -n '/```sh/,/```/p' docs/install.md
sed 's/[^/]*$//' README.md | head -1
sed 'N;s/\n/ /' data/scores.tsv
sed ':a;N;$!ba;s/\n/, /g' data/scores.tsv
sed '1!G;h;$!d' data/scores.tsv
sed 'y/abc/ABC/' data/users.csv
awk '{print $1}' data/scores.tsv
awk -F, '{print $2}' data/users.csv
awk -F',' 'NR>1 {print $2, $4}' data/users.csv
awk -F, 'NR>1 && $4>30 {print $2}' data/users.csv
awk -F, '$3=="red"{c++} END{print c}' data/users.csv
awk -F, 'NR>1{s+=$4} END{print s/(NR-1)}' data/users.csv
awk -F, 'NR>1{n[$3]++} END{for(t in n) print t, n[t]}' data/users.csv | sort
awk 'NR>=5 && NR<=10' docs/faq.md
awk '/## Steps/{f=1} /## Next/{f=0} f' docs/install.md
awk '/^## /{print NR": "$0}' docs/faq.md
awk 'END{print NR}' logs/app.log
awk '{print length($0)}' README.md | sort -n | tail -1
awk '{printf "%-10s %5d\n", $1, $2+$3}' data/scores.tsv
awk 'BEGIN{FS="\t"; OFS=","} {print $1,$2,$3}' data/scores.tsv
awk -F: '/port/{gsub(/ /,"",$2); print $2}' config/app.yaml
awk '!seen[$3]++ {print $3}' logs/app.log
awk -v level=ERROR '$3==level{print $4}' logs/app.log
awk 'match($0,/[0-9]+ms/){print substr($0,RSTART,RLENGTH)}' logs/app.log
awk '{ if ($3 == "ERROR") print toupper($4); else print $3 }' logs/app.log
awk -F'|' 'NF>2{print $2}' docs/api/users.mdx
awk 'length > 40' docs/*.md
awk '{split($2,t,":"); h[t[1]]++} END{for(x in h) print x, h[x]}' logs/app.log | sort
awk '/^---$/{n++; next} n==1' docs/install.md
awk 'FNR==1{print FILENAME": "$0}' docs/api/*.mdx
awk '{for(i=NF;i>0;i--) printf "%s%s", $i, (i>1?" ":"\n")}' data/scores.tsv
awk -F'[][]' '/tags/{print $2}' docs/install.md
jq . data/config.json
jq '.name' data/config.json
jq -r '.version' data/config.json
jq -r '.services[].name' data/config.json
jq -r '.services[] | "\(.name):\(.port)"' data/config.json
jq '.services | length' data/config.json
jq -r '.services[] | select(.port > 100) | .name' data/config.json
jq -c '.limits | to_entries[]' data/config.json
jq 'keys' data/config.json
jq -r '.tags | join(", ")' data/config.json
jq -r 'select(.type=="error") | .user' data/events.jsonl
jq -s 'length' data/events.jsonl
jq -s 'group_by(.user) | map({user: .[0].user, n: length})' data/events.jsonl
jq -s 'map(.ms) | add / length' data/events.jsonl
jq -r '[.user,.type,.ms] | @tsv' data/events.jsonl
jq --arg u ann -c 'select(.user==$u)' data/events.jsonl
jq '.missing // "none"' data/config.json
jq -e '.missing' data/config.json
cat data/config.json | jq '.limits.users'
cat data/events.jsonl | jq -r .type | sort | uniq -c
jq .broken data/users.csv
grep error data/events.jsonl | jq -r .user | sort -u
printf 'a\nb\n'
printf "%s\n" docs/*.md
printf '%-10s|%5.1f\n' total 3.14159
printf '%s: %d lines\n' README.md 6
printf '%05d %x\n' 42 255
printf "one\ntwo\nthree\n" | grep -n two
printf '%s\n' a b c | sort -r | head -1
echo "a,b,c" | tr ',' '\n'
echo "hello world" | awk '{print $2}'
echo $'tab\there'
echo $'it\'s' && echo 'done'
test -f README.md && echo exists
test -d docs && ls docs | head -2
[ -f docs/install.md ] && head -3 docs/install.md
[ -d nosuch ] || echo "no such folder"
[ -s empty.txt ] || echo "empty"
[ "a" = "b" ] && echo same || echo different
[ 3 -gt 2 ] && echo bigger
[ ! -e nosuch ] && echo "not there"
! grep -q nosuch README.md && echo "not mentioned"
! grep -q TODO README.md || echo mentioned
true && echo yes; false || echo no
ls docs && ls nosuch || echo "one is missing"
f=docs/faq.md; grep -c '^## ' "$f"
f="docs/guides/opening hours.md"; cat "$f" | tail -1
d=docs; ls $d/*.md; wc -l $d/faq.md
dir=docs/guides; cd "$dir" && ls | wc -l
pattern='TODO|FIXME'; grep -rnE "$pattern" src docs | sort
n=3; head -n $n README.md; tail -n "$n" README.md
file=docs/install.md; echo "${file##*/} ${file%.md} ${#file}"
a=1 b=2; echo "$a-$b" $a$b
for f in docs/*.md; do echo "== $f"; head -3 "$f"; done
for f in docs/*.md docs/api/*.mdx; do echo "$f: $(true)"; done
for f in docs/*.md; do echo "$f $(wc -l < $f)"; done
for f in docs/*.md; do wc -l "$f"; done | sort -n
for f in docs/guides/*; do echo "$f"; done
for w in TODO error install; do echo "$w:"; grep -rlw "$w" docs | sort; done
for i in 1 2 3; do sed -n "${i}p" data/users.csv; done
for i in {1..3}; do echo "line $i"; done
for d in docs docs/*/; do ls -1 "$d" | wc -l; done
for f in *.md; do grep -q TODO "$f" && echo "$f"; done
for f in docs/*.md; do [ -f "$f" ] || continue; basename "$f" .md; done
for f in nosuch/*.md; do [ -e "$f" ] || break; cat "$f"; done; echo end
for f in src/*.py; do echo "### ${f##*/}"; grep -n "def " $f; done
for k in name version; do jq -r ".$k" data/config.json; done
for x in a b; do for y in 1 2; do echo "$x$y"; done; done
cd docs && grep -rn "TODO" .
cd docs; ls *.md; cd ..; ls data
cd docs/guides && cat backup.md && cd ../.. && head -1 README.md
cd nosuch 2>/dev/null || echo "no folder"
cd docs && ls | head -2 && cd guides && ls | wc -l
ls nosuch 2>&1 | head -1
wc -l < nosuch 2>/dev/null || echo unreadable
diff <(true) <(true)
diff docs/install.md docs/faq.md | head -5
diff -u data/users.csv data/scores.tsv | head -4
stat -c '%s %n' README.md
file docs/install.md
du -sb data | cut -f1
basename docs/install.md .md
dirname docs/guides/backup.md
ls docs/*.md | xargs -n1 basename
ls docs/*.md | xargs -I{} sh -c 'head -1 {}'
ls docs/*.md | xargs -I{} head -n 1 {}
ls docs/*.md | while read f; do echo "$f"; done
ls -t docs | head -1 | wc -l
echo docs/{install,faq}.md
echo {a,b{1,2}}{x,y}
cat docs/{install,faq}.md | grep -c '^#'
ls {docs,data}/*.{md,csv}
echo $(ls docs | wc -l)
if [ -f README.md ]; then echo yes; fi
cat <<< "hello" | wc -c
ls -a # what is here
grep -rn TODO src   # in code only
grep -rn "TODO" . | sort | awk -F: '{c[$1]++} END {for (f in c) print c[f], f}' | sort -rn
grep -rhE '^#+ ' docs | sed 's/^#* //' | sort | uniq -c | sort -rn | head -5
find docs -name '*.md' -exec grep -H '^# ' {} + | sed 's/:# /: /' | sort
find . -name '*.md' -not -path './.hidden/*' | sort | xargs -d '\n' wc -l | tail -1
tail -n +2 data/users.csv | awk -F, '{print $3}' | sort | uniq -c | awk '$1>1{print $2}'
cat logs/app.log | cut -d' ' -f1,3 | sort | uniq -c | sort -k2,2 -k1,1nr
grep ERROR logs/app.log | cut -d' ' -f4- | sort | uniq -c | sort -rn | head -1
""".strip().splitlines()

_TEXTS = r"""
# what is here
ls

# and below
ls docs | head -3
%%
grep -rn TODO docs |
  sort |
  head -5
%%
grep -rn \
  --include='*.md' \
  TODO . | sort
%%
find . -name '*.md' \
  -not -path './.hidden/*' \
  | sort \
  | head -3
%%
cd docs
ls *.md
cat faq.md | head -3
%%
cat README.md &&
  cat CHANGELOG.md | head -3 ||
  echo failed
%%
for f in docs/*.md; do
  echo "== $f"
  head -2 "$f"
done
%%
for f in docs/*.md
do
  # the title
  grep "^# " "$f"
done | sort
%%
for f in docs/*.md docs/guides/*.md; do
  if grep -q TODO "$f"; then echo "$f"; fi
done
%%
f=docs/install.md
wc -l $f
grep -n '^##' $f
%%
awk '
  /^## / { title = $0 }
  /TODO/ { print title ": " $0 }
' docs/guides/backup.md README.md
%%
awk -F, '
NR > 1 {
  sum[$3] += $4
  n[$3]++
}
END {
  for (t in sum)
    printf "%s %.1f\n", t, sum[t] / n[t]
}' data/users.csv | sort
%%
jq -r '
  .services[]
  | select(.port < 1000)
  | .name
' data/config.json
%%
sed -n '
/## Steps/,/## Next/ {
  /^$/d
  p
}' docs/install.md
%%
# count by type
cat data/events.jsonl \
  | jq -r .type \
  | sort | uniq -c   # most first
%%
echo 'first line
second line' | wc -l
%%
ls docs # folders and files
ls data # tables
%%
pattern='TODO'
for d in docs src; do
  echo "$d: "
  grep -rn "$pattern" "$d" | sort
done
%%
while read -r line; do echo "$line"; done < README.md
%%
cat <<EOF
hello
EOF
%%
grep -n TODO README.md; echo "exit code: $?"
%%
grep -q nosuch README.md
echo "exit: $?"
""".strip().split("\n%%\n")

REALISTIC: tuple[str, ...] = (*_LINES, *_TEXTS)
REFUSED_REALISTIC: frozenset[str] = frozenset(
    text
    for text in REALISTIC
    if any(part in text for part in ("$(", "<(", "if [", "if grep", "while read", "<<", "sh -c"))
)
"""Those with what is not offered: substitution, conditions, `while`, text in the command, another shell."""
