"""Lines that are harmless and usual; each must give byte for byte what bash gives (inventory SW1)."""

from __future__ import annotations

BENIGN: tuple[str, ...] = tuple(
    r"""
ls
ls -1
ls -a
ls -lan docs
ls -1 docs api
ls -R
ls *.md
ls api/*.json
ls api/{a,b}.json
ls api/[ab].json
ls api/[!a].json
ls api/?.json
ls nosuch
ls nosuch 2>/dev/null
ls nosuch 2>&1
ls nosuch > /dev/null 2>&1
ls nosuch 2>/dev/null || echo none
ls docs && echo yes
ls nosuch || ls docs
ls docs; ls api
ls -d */
ls -d docs/*/
echo *
echo .*
echo docs/* api/*
echo nosuch*
echo a  b   c
echo "a  b" 'c  d' e\ f
echo -n x
echo -e 'a\tb'
echo 'single $x `y`' "double \$x \`y\` \"z\" \\"
echo a"b"'c'd
echo "" '' x
echo {a,b}{1,2}
echo x{a,b}y {} {a} a{}b
echo "{a,b}" '{a,b}'
echo a=b node env exec python sh
echo 5$ $ "$" 'a$'
echo "a|b" 'a;b' "a&b" "a>b" 'a<b' "(a)"
echo a\|b a\;b a\&b a\>b
echo [a] ] [ x]
echo !important a!b
echo a#b
echo ünï cödé
echo ü* docs/g?ide.md
echo -- -x
cat README.md
cat -n docs/guide.md
cat "docs/sub dir/deep file.txt"
cat docs/sub\ dir/*.txt
cat docs/'sub dir'/deep*
cat nosuch README.md
cat README.md names.txt | wc -l
cat README.md | cat | cat
cat empty.txt
cat /dev/null
grep foo README.md
grep -n foo README.md docs/guide.md
grep -rn foo .
grep -rin "foo" docs README.md
grep -rn "foo => bar" .
grep -rn "node\|python" docs
grep -rnE "node|python" docs
grep -E "a|b" api/a.json
grep -rn 'env | sort' .
grep -rl foo . | sort
grep -rc foo docs | sort
grep -c '' docs/numbers.txt
grep -rn --include=*.md foo .
grep -rn --include="*.md" --include='*.mdx' e . | sort
grep -rn --include=*.{md,mdx} x . | sort
grep -rn --exclude-dir=docs foo . | sort
grep -A2 -B1 "line 10$" docs/numbers.txt
grep -C1 '^line 2$' docs/numbers.txt
grep -1 '^line 2$' docs/numbers.txt
grep -m1 line docs/numbers.txt
grep -m 2 line docs/numbers.txt
grep -on "[0-9]\+" docs/numbers.txt | head -3
grep -oP '\d+$' docs/numbers.txt | tail -2
grep -v line docs/numbers.txt
grep -w Foo docs/guide.md
grep -x foo README.md
grep -F '$(sub)' api/ref.mdx
grep -F '`code`' api/ref.mdx
grep '"cost": "\$5"' api/a.json
grep -e foo -e Guide README.md docs/guide.md
grep -q foo README.md && echo found
grep -q nosuch README.md || echo missing
grep -h foo README.md .hidden
grep --color=never foo README.md
grep foo nosuch
grep -s foo nosuch
grep -rn foo nosuch 2>/dev/null | head -5
grep foo README.md /dev/null
grep -i ÄPFEL "docs/sub dir/deep file.txt"
grep -- -x README.md
grep -L foo README.md names.txt
grep foo
head README.md
head -n 3 docs/numbers.txt
head -3 docs/numbers.txt
head -n -38 docs/numbers.txt
head -c 10 docs/numbers.txt
head -n 1 README.md docs/guide.md
head -qn1 README.md docs/guide.md
tail -n 2 docs/numbers.txt
tail -2 docs/numbers.txt
tail -n +39 docs/numbers.txt
tail -c 8 docs/numbers.txt
head -20 docs/numbers.txt | tail -5
sed -n '10,12p' docs/numbers.txt
sed -n 5p docs/numbers.txt
sed -n '2,3p;5p' docs/numbers.txt
sed -n '$p' docs/numbers.txt
sed -n -e 1p -e 3p docs/numbers.txt
sed -n '10,+2p' docs/numbers.txt
sed -n '3q' docs/numbers.txt
cat docs/numbers.txt | sed -n '7,8p'
wc -l docs/numbers.txt
wc docs/numbers.txt README.md
wc -l docs/*.txt api/*.json
sort "docs/sub dir/deep file.txt"
sort -u "docs/sub dir/deep file.txt"
sort -rn "docs/sub dir/deep file.txt"
sort -k2,2n docs/numbers.txt | tail -3
sort -t ' ' -k 2nr docs/numbers.txt | head -2
sort "docs/sub dir/deep file.txt" | uniq -c
sort "docs/sub dir/deep file.txt" | uniq -d
sort -c docs/numbers.txt
cat docs/numbers.txt | sort -V | head -2
diff api/a.json api/b.json
diff -U0 api/a.json api/a.json
diff -q api/a.json api/b.json
diff README.md README.md && echo same
diff -r docs docs
diff -y -W 60 api/a.json api/b.json
find . -type f | sort
find docs -name '*.md'
find . -name "*.json" -o -name "*.md" | sort
find . -type f \( -name '*.md' -o -name '*.mdx' \) | sort
find . -maxdepth 1 -type d | sort
find . -mindepth 1 -maxdepth 1 ! -name '.*' | sort
find . -not -path './docs/*' -type f | sort
find . -iname 'readme*'
find . -size +0 -type f | wc -l
find . -empty
find docs -type f -printf '%f %s\n' | sort
find . -name '*.json' -exec grep -l cost {} +
find . -name '*.json' -exec grep -H name {} \; | sort
find . -name '*.txt' -exec wc -l {} + | sort
find . -type f -name '*.md' -print0 | xargs -0 grep -l foo | sort
find . -name '*.md' | xargs grep -n foo | sort
find . -name '*.json' | sort | xargs -n1 basename
find . -name '*.json' | sort | xargs -I{} echo "[{}]"
find . -name '*.json' | sort | xargs -I {} head -n 1 {}
find nosuch
find . -path ./docs -prune -o -type f -print | sort
echo a b c | xargs
echo a b c | xargs -n 1
echo a b c | xargs -n2 echo x
echo "a 'b c' d" | xargs -n1
echo 'a\ b c' | xargs -n1
echo "a,b" | xargs -d , -n1 echo
cat names.txt | xargs cat
cat names.txt | xargs -I% wc -l %
cat names.txt | xargs -L1 echo got
cat empty.txt | xargs echo empty
cat empty.txt | xargs -r echo empty
echo "it's" | xargs echo
echo nosuch | xargs cat
cat names.txt | xargs -P 1 -n1 head -1
basename docs/guide.md
basename docs/guide.md .md
basename -a docs/guide.md api/a.json
basename -s .json api/a.json
dirname docs/guide.md
dirname docs/sub/x y
realpath --relative-to=. docs/guide.md
realpath --relative-to=docs api/a.json
realpath -m --relative-to . docs/nosuch
stat -c '%n %s %A' README.md
stat -c %s README.md docs/guide.md
stat --format=%F docs
stat nosuch
file README.md
file -b api/a.json
file --mime-type README.md docs/guide.md
du -a --apparent-size -b docs api
du -sb api
cd docs && ls
cd docs && cat guide.md | head -1
cd docs && cat ../README.md
cd "docs/sub dir" && wc -l *
cd docs/sub\ dir && cat ../guide.md | head -2
cd api && ls | wc -l && cat a.json
cd docs
ls | grep md | sort -r | head -2 | cat -n
ls docs 2>/dev/null | head -20
ls 2>&1 1>/dev/null
cat nosuch 2>&1 | grep -c 'No such'
ls nosuch README.md 2>/dev/null; echo done
ls nosuch &>/dev/null || echo quiet
ls nosuch 1>&2 2>/dev/null
grep -rn "TODO" . || echo "no todo"
grep -rn foo . | grep -v hidden | sort | head -n 2
ls && ls nosuch || echo x && echo y
ls nosuch && echo a || echo b; echo c
""".strip().splitlines()
)
