"""Lines that must do no harm: no write, no foreign program, no byte from outside, no hang.

Those of `REFUSED` must be refused before anything runs; those of `CONTAINED` may run, since what they do is harmless in
the sandbox: they read links, odd files and the edges of what is allowed. `{out}` is the path of the outside folder.
"""

from __future__ import annotations

_FOREIGN = """
id whoami env printenv set export bash sh dash zsh python python3 perl ruby node php lua gawk mawk sed-ext vi ed ex
rm mv cp ln touch mkdir rmdir chmod chown dd tee truncate install rsync tar zip unzip gzip cpio split csplit mktemp
curl wget nc ncat socat telnet ssh scp ftp ping dig git make gcc cc ld gdb strace ltrace sudo su doas chroot unshare
nsenter mount umount kill pkill nohup setsid timeout time nice xterm screen script watch crontab at systemctl docker
eval exec source . alias trap ulimit umask read command builtin type hash history fc jobs bg fg wait
less more man zgrep busybox toybox openssl base64 xxd od strings column paste join comm rev
"""

_WRITES = """
echo x > pwned
echo x >> pwned
echo x >| pwned
echo x > {out}/pwned
echo x >README.md
echo x 1>pwned
echo x 2>pwned
echo x 3>pwned
echo x &>pwned
echo x &>>pwned
echo x >&pwned
echo x 2>&1 >pwned
echo x <> pwned
echo x > /dev/null > pwned
echo x >/dev/null2
echo x >/dev//null
echo x >/dev/tcp/127.0.0.1/80
echo x > "pwned"
echo x > $'pwned'
echo x ''>pwned
> pwned
>pwned echo x
ls | tee pwned
sort -o pwned README.md
sort -opwned README.md
sort -uo pwned README.md
sort --output=pwned README.md
sort --output pwned README.md
sort --out=pwned README.md
sort --o=pwned README.md
sort README.md -o README.md
sort -T . README.md
sort -S1b -T. README.md
sort --temporary-directory=. README.md
sort --buffer-size=1b README.md
sort --parallel=2 README.md
sort --batch-size=2 README.md
uniq README.md pwned
uniq -c README.md README.md
uniq -- README.md pwned
uniq - pwned
find . -delete
find . -name README.md -delete
find . -fprint pwned
find . -fprint0 pwned
find . -fprintf pwned %p
find . -fls pwned
find . -type f -fprint {out}/pwned
find . -exec rm {} ;
find . -exec rm {} \\;
find . -exec rm {} +
find . -exec sh -c 'echo x > pwned' \\;
find . -exec cp {} {}.bak \\;
find . -exec sort -o {} {} \\;
find . -exec uniq {} pwned \\;
find . -exec tee pwned \\;
find . -exec sed -i s/a/b/ {} +
find . -exec {} \\;
find . -exec find . -delete \\;
find . -exec xargs rm \\;
find . -exec grep x {} + -delete
find . -exec grep x {} \\; -fprint pwned
find . -execdir cat {} \\;
find . -execdir rm {} +
find . -ok cat {} \\;
find . -okdir cat {} \\;
find . -exec ./script.sh \\;
find . -exec cat{} \\;
find . -exec cat {} x+
find . ( -name x -o -delete )
find . \\( -name x -o -delete \\)
find -delete
find -- . -delete
find . -true , -delete
find . -name '*' -a -delete
find . -depth -delete
ls | xargs rm
ls | xargs -n1 rm -f
ls | xargs -I{} rm {}
ls | xargs -I rm rm
ls | xargs -i rm {}
ls | xargs sh -c 'echo x'
ls | xargs -n1 sh
ls | xargs xargs rm
ls | xargs find . -delete
ls | xargs find
ls | xargs env rm
ls | xargs ./script.sh
ls | xargs /bin/rm
ls | xargs -I% % x
ls | xargs -a names.txt cat
ls | xargs --arg-file=names.txt cat
ls | xargs --arg-file names.txt cat
ls | xargs --arg=names.txt cat
ls | xargs -o cat
ls | xargs -p cat
ls | xargs -t cat
ls | xargs --process-slot-var=LD_PRELOAD cat
ls | xargs --show-limits
ls | xargs -E x cat
ls | xargs -e cat
ls | xargs sort -o pwned
ls | xargs uniq x
ls | xargs tee
ls | xargs sed -i s/a/b/
cat options.txt | xargs sort
cat options.txt | xargs -d '\\n' sort
echo -o pwned | xargs sort README.md
echo -o pwned | xargs -I{} sort {}
echo ' -o pwned' | xargs -L1 sort
tree -o pwned
tree -o pwned .
tree -R -L 1 -H .
tree --output pwned
tree -H http://x -L 2 -R
diff -l README.md names.txt
diff --paginate README.md names.txt
diff --to-file=README.md names.txt
diff --from-file=README.md names.txt
file -C -m script.sh
file -z README.md
file -Z README.md
file -p README.md
file -S README.md
file --compile -m script.sh
sed -i s/foo/bar/ README.md
sed -n -i p README.md
sed -ni.bak 1p README.md
sed -n 1,2p -i README.md
sed -n 'w pwned' README.md
sed -n '1w pwned' README.md
sed -n '1,2w pwned' README.md
sed -n 1e README.md
sed -n '1e id' README.md
sed -n '1,2p;1e id' README.md
sed -n 's/foo/id/e' README.md
sed -n 'r /etc/passwd' README.md
sed -n '1r/etc/passwd' README.md
sed s/foo/id/e README.md
sed --in-place 1p README.md
sed -n -f script.sh README.md
sed --expression='1w pwned' -n README.md
sed --debug -n 1p README.md
sed -n -e 1p -e '1w pwned' README.md
""".strip().splitlines()

_RUNS = """
$(id)
`id`
echo $(id)
echo `id`
echo "$(id)"
echo "`id`"
echo "a $(id) b"
echo $((1+1))
echo $[1+1]
echo ${PATH}
echo $PATH
echo "$PATH"
echo "${PATH}"
echo $HOME
echo $$
echo $0
echo $@
echo $!
echo $-
echo $_
echo "$_"
echo $"id"
echo ${x:=1}
echo ${!PATH*}
cat <(id)
diff <(id) <(id)
cat < /etc/passwd
cat </etc/passwd
cat 0</etc/passwd
cat <<EOF
cat <<<id
cat <& 3
cat 3</etc/passwd
ls & id
ls &
ls&id
ls |& cat
ls ;; id
( id )
(id)
{ id; }
{ ls; }
ls; (id)
! id
if ls; then id; fi
for x in a; do id; done
while ls; do id; done
until ls; do id; done
case x in x) id;; esac
function f { id; }
f() { id; }
select x in a; do id; done
coproc id
time id
[[ -f x ]]
((1))
A=1 ls
PATH=. ls
LD_PRELOAD=./x.so ls
LC_ALL=x PATH=/bin id
A+=1 ls
A[0]=1 ls
IFS=x ls
"A=1" ls
'id'
"id"
i\\d
i''d
\\id
/usr/bin/id
/bin/ls
./script.sh
docs/../script.sh
script.sh
""
'' ls
{id,-u}
{rm,README.md}
[i]d
?d
./scr*
*
~/bin/x
~
echo ~
echo ~root
ls ~
ls ~/..
ls a=~
ls -- ~
ls {~,a}
ls | id
ls | | id
ls || id
ls nosuch || id
ls && id
ls; id
ls;id
ls | cat | id
ls | cat && id
;ls
&& ls
| ls
ls |
ls &&
ls ||
cd / && ls
cd .. && ls
cd - && ls
cd ~ && ls
cd docs/.. && cd .. && ls
cd docs; id
cd && ls
cd docs api && ls
cd updir && ls
cd rootlink && ls
cd rootlink/etc && cat passwd
cd docs && cat ../../outside/secret.txt
cd $HOME && ls
cd "$(id)" && ls
cd docs 2>/dev/null && id
cd -P docs && ls
cd docs | ls
sort --compress-program=id README.md
sort --compress-program id README.md
sort --compress-prog=./script.sh -S1b README.md
sort --comp=id README.md
# id
ls \\
""".strip().splitlines()

_OUTSIDE = """
cat /etc/passwd
cat {out}/secret.txt
cat ../outside/secret.txt
cat ./../outside/secret.txt
cat docs/../../outside/secret.txt
cat docs/../../../etc/passwd
cat "../outside/secret.txt"
cat '../outside/secret.txt'
cat ..\\/outside/secret.txt
cat .\\./outside/secret.txt
cat .''./outside/secret.txt
cat "/etc"/passwd
cat /e\\tc/passwd
cat /etc/pass*
cat /etc/passw?
cat /etc/[p]asswd
cat {/etc/passwd,README.md}
cat ../{outside,x}/secret.txt
cat ../*/secret.txt
cat ../*
cat */../../outside/secret.txt
cat ./..
cat -- /etc/passwd
cat - /etc/passwd
cat //etc/passwd
cat /proc/self/environ
cat /proc/1/environ
cat /dev/mem
cat /dev/stdin
cat /dev/fd/3
cat /dev/tcp/127.0.0.1/22
cat /dev/random
cat /dev/zero
head -c 10 /dev/urandom
tail -f README.md
tail -F README.md
tail --follow README.md
tail --fol README.md
tail --retry README.md
tail -n 1 -f README.md
tail --pid=1 -f README.md
tail -s 9 README.md
head -n 1 /etc/passwd
head -n1 /etc/passwd
head -1 /etc/passwd
tail -n+1 /etc/passwd
grep -r root /etc
grep root /etc/passwd
grep -f /etc/passwd README.md
grep -f{out}/secret.txt README.md
grep --file=/etc/passwd README.md
grep --fil=/etc/passwd README.md
grep -rf /etc/passwd .
grep -nf patterns README.md
grep --exclude-from=/etc/passwd x README.md
grep --exclude-f=/etc/passwd x README.md
grep -e x -f names.txt README.md
grep x --devices=read /dev/zero
grep -D read x README.md
grep -d recurse x /etc
grep --directories=recurse x /
grep -r x ..
grep -r x docs/../..
grep -A99999999 x README.md
find / -name passwd
find .. -name '*'
find /etc
find docs /etc
find . -newer /etc/passwd
find . -samefile {out}/secret.txt
find . -newermm /etc/passwd
find . -anewer {out}/secret.txt
find . -cnewer /etc/passwd
find -L .
find -H .
find -P .
find . -follow
find -D exec .
find -O3 .
find . -files0-from names0
find -files0-from names0
find . -printf '%2147483647d'
find . -printf '%999999999p'
find . -printf '%-999999s'
find . -printf '%u%F'
find . -ls -exec cat /etc/passwd ;
find . -exec cat /etc/passwd \\;
find . -exec cat ../outside/secret.txt {} +
find . -exec grep -f names.txt {} +
find . -exec grep -rn root / {} +
find . -user root
find . -context x
find . -fstype proc
find . -maxdepth x
find . -size +1x
find . -type s
find . -type p
find . -perm u=x
find . -used 1
find . -inum 5
find . -version
find --help
ls /
ls /etc
ls ..
ls -la ../outside
ls -L link
ls -l -L
ls -LH rootlink
ls --dereference
ls --hyperlink
ls --hyper
ls -Z
ls -D
ls -T 99999999999
ls -w 1
ls --width=99999
ls --block-size=1
ls --time-style=+%N
ls --help
ls --version
ls --indicator-style=none
wc --files0-from=names0
wc --files0-from names0
wc --files0=names0
wc -l /etc/passwd
du --files0-from=names0
du -X names.txt
du --exclude-from=names.txt
du -L .
du -D .
du --dereference
du -H .
du /etc
du --time
sort --files0-from=names0
sort --files0=names0
sort --random-source=/etc/passwd -R README.md
sort --random-source=/dev/zero README.md
sort -R README.md
sort -k1R README.md
sort --sort=random README.md
sort /etc/passwd
sort -m /etc/passwd
sort --debug README.md
sort --help
stat /etc/passwd
stat -f .
stat -L link
stat --file-system .
stat -c '%2000000000n' README.md
stat -c %999999s README.md
stat --printf='%99999999n' README.md
stat --cached=never README.md
stat --dereference link
file /etc/passwd
file -L link
file -f names.txt
file -fnames.txt
file --files-from names.txt
file --files-from=names.txt
file -m /etc/magic README.md
file -P name=99999 README.md
file -s /dev/sda
file --dereference link
file -v
file -d README.md
tree /
tree ..
tree -l
tree --fromfile names.txt
tree --fromtabfile names.txt
tree --gitfile=names.txt
tree --infofile=names.txt
tree --gitignore
tree -L x
diff /etc/passwd README.md
diff README.md /etc/passwd
diff README.md
diff -r . ..
diff -X names.txt . docs
diff --exclude-from=names.txt . docs
diff -U 99999999 README.md names.txt
diff -W 99999999 -y README.md names.txt
diff -I '(a+)+$' README.md names.txt
diff -D x README.md names.txt
diff --line-format=%L README.md names.txt
diff --ifdef=x README.md names.txt
diff --starting-file=x . docs
diff --no-dereference . docs
diff a b c
basename
dirname
realpath /etc
realpath ..
realpath --relative-to=/ .
realpath --relative-to / .
realpath --relative-base=.. .
uniq /etc/passwd
uniq -w x README.md
cat outside.txt | xargs cat
cat up.txt | xargs cat
cat up.txt | xargs -I{} cat {}
cat up.txt | xargs -n1 head
cat names0 | xargs -0 cat
echo /etc/passwd | xargs cat
echo ../outside/secret.txt | xargs grep -n OUT
echo "'/etc/passwd'" | xargs cat
echo '/etc\\/passwd' | xargs cat
echo etc/passwd | xargs -I{} cat /{}
echo passwd | xargs -I{} cat /etc/{}
echo outside | xargs -I{} cat ../{}/secret.txt
echo f | xargs -I{} grep -{} names.txt README.md
echo --files0-from=names0 | xargs wc
echo -f /etc/passwd | xargs grep x
""".strip().splitlines()

_CONTAINED = """
cat link
cat passwd
cat updir/secret.txt
cat rootlink/etc/passwd
cat rootlink/proc/self/environ
cat rootlink/bin/ls
cat loop
cat *
cat -- *
cat ./*
cat ./-delete
cat l*nk p*wd
cat up*/secret.txt
cat rootlink/etc/pass*
cat names0
head -c 100 link passwd
tail link
grep -r OUTSIDE .
grep -R OUTSIDE .
grep -Rn root .
grep -rn root rootlink
grep -R root rootlink/etc
grep root link passwd
grep -c '' passwd link
ls -la
ls -la link passwd rootlink updir
ls -la updir/ rootlink/
ls -R rootlink
ls rootlink/*
echo rootlink/* updir/*
echo rootlink/etc/*
stat link passwd
stat rootlink/etc/passwd
file link passwd rootlink
file updir/secret.txt
wc -c link passwd updir/secret.txt
sort link
sort passwd README.md
uniq link
diff link passwd
diff -r . updir
diff README.md link
diff rootlink/etc/passwd link
du -a rootlink
du -a .
find .
find . -type l
find rootlink/
find updir/ -type f
find rootlink/etc -name passwd -exec cat {} +
find . -name 'p*' -exec cat {} \\;
find . -exec cat {} +
find . -exec grep -l OUTSIDE {} +
find . -type f -exec head -n 1 {} +
find . -printf '%p %s %l\\n'
find . -name '*.sh' -exec file {} \\;
find ./-delete
find . -name -delete
find . -name -exec
find . -path '*-o*'
realpath link passwd rootlink
realpath -e passwd
realpath -m updir/nosuch
basename rootlink/etc/passwd
dirname ../../x
echo ../outside /etc/passwd
echo /etc/passwd '> pwned' '| id' '$(id)' '`id`' '; id'
echo '-o' pwned
echo a\\;id
echo a\\|id
echo "a;id|id&id"
sort -- -o
sort ./-o
uniq -- -o
cat -- -delete
ls -- -delete -o
ls *
wc -- *
wc ./*
sort ./-* README.md
find * -type f
grep foo *
grep foo -- *
head *
ls | xargs cat
ls | xargs ls -d
ls | xargs -I{} cat ./{}
find . -print0 | xargs -0 cat
find . | xargs wc -c
find . -type l | xargs cat
find . -type l | xargs -n1 file
echo link passwd | xargs cat
echo link | xargs -I{} cat {}
echo "link" | xargs -d '\\n' cat
echo rm README.md | xargs echo
echo id | xargs
cat script.sh | xargs -0 echo
grep -E '(a+)+$' README.md
grep -E '(.*)*b' docs/numbers.txt
grep -P '(a+)+$' README.md
grep -E 'a{1,200}' docs/numbers.txt
grep -E '(.)(.)(.)(.)(.)\\5\\4\\3\\2\\1' docs/numbers.txt
sed -n '1,999999999p' README.md link
sed -n '$p' passwd
cat /dev/null
grep foo README.md /dev/null
{ls,id}
cat .*/outside/secret.txt
ls 2>/dev/null
ls nosuch 2>&1
ls nosuch >/dev/null 2>&1
ls &>/dev/null
ls nosuch 2>&1 | cat
cat nosuch || ls nosuch
cat nosuch && echo yes
cat nosuch; echo yes
cd docs && cat ../link
cd docs && cat ../README.md
cd "docs/sub dir" && cat ../../README.md
cat docs/guide.md docs/guide.md docs/guide.md | sort | uniq -c | sort -rn | head
tail -n 99999999 docs/numbers.txt
head -n -99999999 docs/numbers.txt
ls -I '*'
ls --sort=none -U
tree -L 3
tree -a -L 2 rootlink
sed -n -s 1p README.md
echo $?
echo $'\\x69\\x64'
! ls
A=1
cd docs && cd ..
cd docs || id
cd nosuch && ls
ls && cd docs
ls # id
find . -regex '.*'
find . -iregex '.*'
find . -regextype posix-egrep
""".strip().splitlines()

REFUSED: tuple[str, ...] = (
    *(f"{program} x" for program in _FOREIGN.split()),
    *_WRITES,
    *_RUNS,
    *_OUTSIDE,
    "ls\nid",
    "ls\n\nid",
    "ls\r\nid",
    "echo a\x00b",
    "\x07ls",
    "ls\x0bid",
    "ls\x0cid",
    "ls\u00a0-la",
    "ls '",
    'ls "',
    "",
    "   ",
    "x" * 2001,
    "cat " + "{a,b}" * 14,
    "ls " + "| cat " * 40,
    "cat " + "../" * 300 + "etc/passwd",
    "echo \ud800",
)
CONTAINED: tuple[str, ...] = tuple(_CONTAINED)
